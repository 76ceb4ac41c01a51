"""Where libcupti is: which file, how it was found, and of which CUDA it is. Nothing is loaded here except the driver.

``cuda.pathfinder`` knows the same places, but it finds a library by loading it, and libcupti must not be loaded before
it is chosen: a second copy in one process would not see the subscriptions of the first.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cuptiprof import _core
from cuptiprof.device.driver import Driver, DriverError
from cuptiprof.device.elf import Elf, ElfError, read_elf
from cuptiprof.errors import DeviceError

SONAMES = ("libcupti.so.13", "libcupti.so.12")
VARIABLE = "CUPTIPROF_CUPTI"

# Functions that first appeared in a release, newest first: a lower bound for files that tell their version nowhere else.
_FIRST_IN = (
    ("cuptiClockControlLock", "13.4"),
    ("cuptiGetTimestamp_v2", "13.3"),
    ("cuptiActivityGetStructSize", "13.2"),
    ("cuptiSubscribe_v2", "13.0"),
    ("cuptiActivityEnableHWTrace", "12.8"),
    ("cuptiActivityEnableRuntimeApi", "12.5"),
)
# Releases in the name of the real file (libcupti.so.2025.3.1) -> CUDA.
_RELEASES = {
    "2023.1": "12.1", "2023.2": "12.2", "2023.3": "12.3", "2024.1": "12.4", "2024.2": "12.5", "2024.3": "12.6",
    "2025.1": "12.8", "2025.2": "12.9", "2025.3": "13.0", "2025.4": "13.1", "2026.1": "13.2", "2026.2": "13.3",
}  # fmt: skip
_NEEDS_DRIVER = "cuptiActivityGetStructSize"  # exported from 13.2 on
_NAMED = "named by "  # begins Found.how
_LOADED = "already loaded in this process"
_LIB_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib")


@dataclass(frozen=True)
class Found:
    """A libcupti.

    Attributes:
        path: the file.
        how: how it was found, for people.
        version: its CUDA release: "13.0"; "13.4 or newer" when only a lower bound is known; "" when unknown.
        version_from: what told the version: wheel metadata, file name, toolkit folder, exported functions; or "".
    """

    path: str
    how: str
    version: str = ""
    version_from: str = ""


def file_version(path: str | os.PathLike[str]) -> tuple[str, str]:
    """(CUDA release, what told it) of a libcupti file, without loading it; ("", "") when nothing tells."""
    file = Path(path)
    try:
        file = file.resolve()
    except (OSError, RuntimeError):
        return "", ""
    wheel = _wheel_version(file)
    if wheel:
        return wheel, "wheel metadata"
    match = re.search(r"\.so\.(20\d\d\.\d+)", file.name)
    if match and match.group(1) in _RELEASES:
        return _RELEASES[match.group(1)], "file name"
    match = re.search(r"/cuda-(\d+\.\d+)(?:[./]|$)", str(file))
    if match:
        return match.group(1), "toolkit folder"
    try:
        return exported_version(read_elf(file)), "exported functions"
    except (ElfError, OSError):
        return "", ""


def exported_version(elf: Elf) -> str:
    """Oldest CUDA release whose libcupti exports what this file does: "13.0 or newer"; "" for another library."""
    for function, release in _FIRST_IN:
        if function in elf.exports:
            return f"{release} or newer"
    return "12.4 or older" if "cuptiGetVersion" in elf.exports else ""


def needs_driver(path: str) -> bool:
    """Whether this libcupti does nothing without a driver: 13.2 crashes in the first call, newer ones refuse all."""
    try:
        return _NEEDS_DRIVER in read_elf(path).exports
    except (ElfError, OSError):
        return False


def _wheel_version(file: Path) -> str:
    """CUDA release of the wheel that this file is of; "": of none."""
    for site in list(file.parents)[:5]:  # nvidia/cu13/lib is three below site-packages
        for info in sorted(site.glob("nvidia_cuda_cupti*.dist-info")):
            try:
                record = (info / "RECORD").read_text(errors="replace")
            except OSError:
                continue
            if f"{file.relative_to(site)}," in record:
                match = re.search(r"-(\d+\.\d+)", info.name)
                return match.group(1) if match else ""
    return ""


def candidates(override: str | None = None) -> Iterator[Found]:
    """Every libcupti there is to choose from, best first: named by the user (then no other), already loaded in this
    process, NVIDIA's wheel, conda, the CUDA toolkit, the system's library path."""
    named = override or os.environ.get(VARIABLE)
    if named:
        how = f"{_NAMED}{'the caller' if override else VARIABLE}"
        yield Found(named, how, *file_version(named))
        return
    seen: set[str] = set()
    for path, how in _places():
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield Found(path, how, *file_version(path))


def _places() -> Iterator[tuple[str, str]]:
    """(path, how it was found), best first; a file may come twice."""
    for soname in SONAMES:
        loaded = _core.loaded_library(soname)
        if loaded:
            yield loaded, _LOADED
    yield from ((path, "the one that PyTorch loads") for path in _needed_by_torch())
    for root in _nvidia_packages():
        yield from _present(
            (root / "cu13" / "lib" / SONAMES[0], root / "cuda_cupti" / "lib" / SONAMES[1]),
            "PyPI wheel nvidia-cuda-cupti",
        )
    conda = os.environ.get("CONDA_PREFIX")
    if conda:
        yield from _present((Path(conda, "lib", s) for s in SONAMES), "conda environment")
    for home in dict.fromkeys((os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")):
        if home:
            folders = ("extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
            yield from _present((Path(home, f, s) for f in folders for s in SONAMES), f"CUDA toolkit in {home}")
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield from _present((Path(folder, s) for s in SONAMES), "LD_LIBRARY_PATH")
    yield from ((path, "system library path") for path in _linker_cache())
    yield from _present((Path(f, s) for f in _LIB_FOLDERS for s in SONAMES), "system library path")


def _nvidia_packages() -> list[Path]:
    return _package("nvidia")


def _package(name: str) -> list[Path]:
    """Folders of a package, which is not imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    return [Path(p) for p in spec.submodule_search_locations or []] if spec else []


def _needed_by_torch() -> Iterator[str]:
    """The libcupti that PyTorch will load when it is imported, as the dynamic linker will find it: its profiler's
    library names it and where to look."""
    for package in _package("torch"):
        for name in ("libtorch_cpu.so", "libtorch_cuda.so"):
            library = package / "lib" / name
            try:
                elf = read_elf(library, exports=False)
            except (ElfError, OSError):
                continue
            for needed in elf.needed:
                if not needed.startswith("libcupti.so"):
                    continue
                folders = [
                    *(() if elf.runpath else elf.rpath),
                    *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")),
                    *elf.runpath,
                ]
                origin = str(library.resolve().parent)
                at = (Path(re.sub(r"\$ORIGIN|\$\{ORIGIN\}", origin, f), needed) for f in folders)
                yield from (path for path, _ in _present(at, ""))


def _present(files: Iterable[Path], how: str) -> Iterator[tuple[str, str]]:
    """Those that are there."""
    for file in files:
        try:
            if file.is_file():
                yield str(file), how
        except OSError:
            continue


def _linker_cache() -> list[str]:
    """Paths that the dynamic linker knows for the sonames, from ``ldconfig -p``."""
    for tool in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            out = subprocess.run([tool, "-p"], capture_output=True, text=True, errors="replace", timeout=10).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        return [
            m.group(1) for s in SONAMES for m in re.finditer(rf"^\s*{re.escape(s)} \(.*\) => (\S+)$", out, re.MULTILINE)
        ]
    return []


def choose(override: str | None = None) -> Found:
    """The first of :func:`candidates` that the driver is new enough for, else the first.

    Raises:
        DeviceError: there is none.
    """
    everything = list(candidates(override))
    if not everything:
        raise DeviceError(
            "libcupti was not found",
            hint=f"pip install nvidia-cuda-cupti (the version of your CUDA), or set {VARIABLE} to a libcupti.so; "
            'without a GPU use device="sim"',
        )
    best = everything[0]
    if best.how == _LOADED or best.how.startswith(_NAMED):
        return best  # whatever the driver is
    driver = driver_version() // 1000
    return next((f for f in everything if not driver or major_version(f) <= driver), best)


def find_cupti(override: str | None = None) -> Found:
    """The libcupti to use, checked as far as that goes without loading it.

    Raises:
        DeviceError: there is none, or the file is no libcupti of this processor.
    """
    found = choose(override)
    check_file(found.path)
    return found


def check_file(path: str) -> None:
    """Raise DeviceError unless `path` is a libcupti that this process can load: loading a truncated file can crash."""
    hint = f"pip install --force-reinstall nvidia-cuda-cupti, or set {VARIABLE} to a libcupti.so"
    try:
        elf = read_elf(path)
    except OSError as e:
        raise DeviceError(f"cannot read {path}: {e.strerror}", hint=hint) from None
    except ElfError as e:
        raise DeviceError(f"{path} is no shared library: {e}", hint=hint) from None
    if not elf.is_for_this_machine:
        raise DeviceError(f"{path} is for {elf.machine}, this is {platform.machine()}", hint=hint)
    if "cuptiGetVersion" not in elf.exports:
        raise DeviceError(f"{path} is not a libcupti", hint=hint)


def major_version(found: Found) -> int:
    """CUDA major release of a libcupti; 0: unknown."""
    match = re.match(r"\d+", found.version) or re.search(r"(?<=\.so\.)1\d$", found.path)
    return int(match.group()) if match else 0


def driver_version() -> int:
    """``cuDriverGetVersion()``: newest CUDA that the driver supports, 13000 for 13.0; 0: no working driver."""
    try:
        return Driver().version()
    except (OSError, DriverError):
        return 0


def driver_present() -> bool:
    """Whether there is a working NVIDIA driver."""
    return driver_version() > 0
