"""Where libcupti is: which file, found how, and whether it may be called without a driver."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuptiprof import _core
from cuptiprof.errors import DeviceError

SONAMES = ("libcupti.so.13", "libcupti.so.12")


@dataclass(frozen=True)
class Found:
    """A libcupti: its file, how it was found, and its CUDA version ("13.0"; "" if the file does not tell)."""

    path: str
    how: str
    version: str

    @property
    def safe_without_driver(self) -> bool:
        """CUDA 13.1 and older work without a driver; 13.2 crashes on its first call, newer ones refuse everything."""
        parts = self.version.split(".")
        return len(parts) >= 2 and (int(parts[0]), int(parts[1])) <= (13, 1)


def file_version(path: str | os.PathLike[str]) -> str:
    """CUDA version that a libcupti file belongs to, without calling it: from the wheel's metadata or the toolkit's path."""
    file = Path(path).resolve()
    for site in file.parents:
        for info in site.glob("nvidia_cuda_cupti*.dist-info"):
            record = info / "RECORD"
            if record.is_file() and f"/{file.name}," in record.read_text(errors="replace"):
                match = re.search(r"-(\d+\.\d+)", info.name)
                return match.group(1) if match else ""
        if site.name == "site-packages":
            break
    match = re.search(r"cuda-(\d+\.\d+)", str(file))
    return match.group(1) if match else ""


def _wheels() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or [] if spec else []:
        yield Path(root) / "cu13" / "lib" / "libcupti.so.13"
        yield Path(root) / "cuda_cupti" / "lib" / "libcupti.so.12"


def candidates(override: str | None = None) -> Iterator[Found]:
    """Every libcupti there is to choose from, best first: named by the user, already loaded (two copies in one process
    would not see each other's subscriptions), NVIDIA's wheel, CUDA_HOME, the system."""
    override = override or os.environ.get("CUPTIPROF_CUPTI")
    if override:
        yield Found(override, "named by the user", file_version(override))
        return
    for soname in SONAMES:
        loaded = _core.loaded_library(soname)
        if loaded:
            yield Found(loaded, "already loaded in this process", file_version(loaded))
    for wheel in _wheels():
        if wheel.is_file():
            yield Found(str(wheel), "PyPI wheel nvidia-cuda-cupti", file_version(wheel))
    for home in dict.fromkeys(filter(None, (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"))):
        for folder in ("extras/CUPTI/lib64", "lib64"):
            for soname in SONAMES:
                file = Path(home) / folder / soname
                if file.is_file():
                    yield Found(str(file), f"CUDA toolkit in {home}", file_version(file))
    for soname in SONAMES:
        try:
            ctypes.CDLL(soname)
        except OSError:
            continue
        path = _core.loaded_library(soname)
        yield Found(path or soname, "system library path", file_version(path) if path else "")


def find_cupti(override: str | None = None) -> Found:
    """The libcupti to use.

    Raises:
        DeviceError: there is none, or the named file does not exist.
    """
    for found in candidates(override):
        if override and not Path(found.path).exists():
            raise DeviceError(f"no such file: {found.path}", hint="CUPTIPROF_CUPTI must name a libcupti.so")
        return found
    raise DeviceError(
        "libcupti was not found",
        hint="pip install nvidia-cuda-cupti (the version of your CUDA), or set CUPTIPROF_CUPTI to a libcupti.so; "
        'without a GPU use device="sim"',
    )


def driver_present() -> bool:
    """Whether libcuda.so.1 can be loaded."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
