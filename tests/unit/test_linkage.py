"""The package links no CUDA library: one build serves every driver, and machines without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuptiprof import _core
from cuptiprof.device.elf import ElfError, read_elf
from cuptiprof.device.nvtx_injection import nvtx_library
from cuptiprof.sim.sim_device import library_path

ALLOWED = re.compile(
    r"(libstdc\+\+|libgcc_s|libc|libm|libpthread|libdl|librt|ld-linux[-\w]*|libpython[\d.]+)\.so\.[\d.]+"
)


@pytest.mark.parametrize(
    "file", [Path(_core.__file__), library_path(), nvtx_library()], ids=["_core", "libcupti_sim", "libcuptiprof_nvtx"]
)
def test_only_the_system_is_needed(file: Path) -> None:
    elf = read_elf(file)
    assert elf.needed, "a module that needs not even libc was not read properly"
    assert "libc.so.6" in elf.needed
    assert [n for n in elf.needed if not ALLOWED.fullmatch(n)] == []


def test_the_module_exports_nothing_but_its_entry() -> None:
    """Our classes must not be found by other libraries of the process, nor theirs by ours."""
    ours = {e for e in read_elf(_core.__file__).exports if "cuptiprof" in e or e.startswith("cupti")}
    assert ours == set()


def test_the_stand_in_exports_what_the_loader_needs() -> None:
    elf = read_elf(library_path())
    required = re.findall(
        r"^CP_(?:REQUIRED|DRIVER)\((\w+)\)",
        (Path(__file__).parents[2] / "csrc/cupti/api.def").read_text(),
        re.MULTILINE,
    )
    assert len(required) > 15
    assert [f for f in required if f not in elf.exports] == []


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "libcupti.so.13"
    file.write_bytes(content)
    with pytest.raises(ElfError):
        read_elf(file)


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="not a file"):
        read_elf(tmp_path)
