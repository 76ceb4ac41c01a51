"""What an ELF file says of itself, read without loading it: machine, soname, needed libraries, exported functions."""

from __future__ import annotations

import mmap
import os
import platform
import stat
import struct
from dataclasses import dataclass

MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64", 3: "i386", 40: "arm"}
_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME = 1, 5, 6, 10, 14
_DT_RPATH, _DT_RUNPATH = 15, 29
_SHT_DYNSYM = 11
_SHN_UNDEF = 0
_STB_GLOBAL, _STB_WEAK = 1, 2


class ElfError(ValueError):
    """Not a 64-bit little-endian shared object, or a damaged one."""


@dataclass(frozen=True)
class Elf:
    """A 64-bit little-endian shared object.

    Attributes:
        rpath, runpath: folders in which the loader looks for `needed` before and after LD_LIBRARY_PATH, as they stand in the
            file ("$ORIGIN/../lib").
        exports: empty where they were not read.
    """

    machine: str
    soname: str
    needed: tuple[str, ...]
    exports: frozenset[str]
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()

    @property
    def is_for_this_machine(self) -> bool:
        """Whether this process could load it, as far as the processor goes."""
        return self.machine == platform.machine()


def read_elf(path: str | os.PathLike[str], *, exports: bool = True) -> Elf:
    """Read the dynamic section of `path` and, where wanted, the exported names (a large library has 100,000 of them).

    Raises:
        ElfError: the file is no shared object, is for 32 bits, or its tables lie outside of the file.
        OSError: it cannot be read.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ElfError("not a file")
    if status.st_size == 0:
        raise ElfError("empty file")
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(data, exports)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as e:
        raise ElfError(f"damaged ELF file ({e})") from None


def _read(data: mmap.mmap, with_exports: bool) -> Elf:
    """struct.error or IndexError: a table lies outside of the file. Formats are those of Elf64_Ehdr and what it leads to."""
    if data[:4] != b"\x7fELF":
        raise ElfError("not an ELF file")
    if data[4:6] != b"\x02\x01":
        raise ElfError("not a 64-bit little-endian ELF file")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if kind != _ET_DYN:
        raise ElfError("not a shared object")
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phentsize, phnum, shentsize, shnum = struct.unpack_from("<HHHH", data, 54)

    segments: list[tuple[int, ...]] = [struct.unpack_from("<IIQQQQ", data, phoff + i * phentsize) for i in range(phnum)]
    if any(kind == _PT_LOAD and offset + size > len(data) for kind, _, offset, _, _, size in segments):
        raise ElfError("truncated ELF file")  # loading it would end in SIGBUS
    if shoff + shnum * shentsize > len(data):
        raise ElfError("truncated ELF file")

    def file_offset(address: int) -> int:
        for kind, _, offset, start, _, size in segments:
            if kind == _PT_LOAD and start <= address < start + size:
                return offset + address - start
        raise ElfError("damaged ELF file (address outside of every segment)")

    tags: list[tuple[int, int]] = []
    for kind, _, offset, _, _, size in segments:
        if kind == _PT_DYNAMIC:
            tags = list(struct.iter_unpack("<qQ", data[offset : offset + size - size % 16]))
    table = dict(tags)
    if _DT_STRTAB not in table or _DT_STRSZ not in table:
        raise ElfError("damaged ELF file (no dynamic strings)")
    at = file_offset(table[_DT_STRTAB])
    strings = data[at : at + table[_DT_STRSZ]]

    def text(offset: int) -> str:
        end = strings.find(b"\0", offset)
        if offset >= len(strings) or end < 0:
            raise ElfError("damaged ELF file (string outside of the table)")
        return strings[offset:end].decode("utf-8", "surrogateescape")

    def folders(tag: int) -> tuple[str, ...]:
        return tuple(f for f in text(table[tag]).split(":") if f) if tag in table else ()

    exports: list[str] = []
    for i in range(shnum if with_exports else 0):
        _, section, _, _, offset, size = struct.unpack_from("<IIQQQQ", data, shoff + i * shentsize)
        if section != _SHT_DYNSYM:
            continue
        if offset + size > len(data):
            raise ElfError("damaged ELF file (symbols outside of the file)")
        for name, info, _, index, _, _ in struct.iter_unpack("<IBBHQQ", data[offset : offset + size - size % 24]):
            if name and index != _SHN_UNDEF and info >> 4 in (_STB_GLOBAL, _STB_WEAK):
                exports.append(text(name))
    return Elf(
        machine=MACHINES.get(machine, f"machine {machine}"),
        soname=text(table[_DT_SONAME]) if _DT_SONAME in table else "",
        needed=tuple(text(value) for tag, value in tags if tag == _DT_NEEDED),
        exports=frozenset(exports),
        rpath=folders(_DT_RPATH),
        runpath=folders(_DT_RUNPATH),
    )
