"""native.cpp from Python: built with CMake (option CUPTIPROF_BENCHMARKS), loaded through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
TARGET = "overhead_native"
BUILD_TIMEOUT_S = 240
BUILD_FOLDER = ROOT / "build" / "benchmarks"  # kept, so that the second program that wants it waits for nothing
BUFFER_BYTES = 256 << 10  # as cuptiprof's default


def build(folder: Path = BUILD_FOLDER) -> Path | str:
    """The library, built in `folder`; where it cannot be, why not."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DCUPTIPROF_PYTHON=OFF", "-DCUPTIPROF_BENCHMARKS=ON", f"-DPython_EXECUTABLE={sys.executable}"]  # fmt: skip
    for command in (configure, ["cmake", "--build", str(folder), "--target", TARGET]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as e:
            return f"could not build the native part: {e}"
        if done.returncode != 0:
            return f"could not build the native part: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
    return folder / f"lib{TARGET}.so"


class BareCollector:
    """Requests activity buffers and throws them away: the floor. One at a time in a process."""

    def __init__(self, library: Path, libcupti: str, kind: int, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._lib = ctypes.CDLL(str(library))
        self._lib.bare_start.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64]
        self._libcupti = libcupti.encode()
        self._kind = kind
        self._buffer_bytes = buffer_bytes
        self.requested = 0
        """how often CUPTI asked for a buffer, after ``stop``"""

    def start(self) -> None:
        """Raises OSError with CUPTI's result code."""
        if (rc := self._lib.bare_start(self._libcupti, self._kind, self._buffer_bytes)) != 0:
            raise OSError(f"bare collector: CUPTI result {rc}")

    def stop(self) -> int:
        """Bytes of records that came. Raises OSError with CUPTI's result code."""
        got, requested = ctypes.c_uint64(), ctypes.c_uint64()
        if (rc := self._lib.bare_stop(self._kind, ctypes.byref(got), ctypes.byref(requested))) != 0:
            raise OSError(f"bare collector: CUPTI result {rc}")
        self.requested = requested.value
        return got.value


class Joining:
    """One way of joining launches to regions, beside a bare collector; see joining.cpp. One at a time in a process."""

    BY_CALLBACK, BY_EXTERNAL_ID = 1, 2

    def __init__(self, library: Path, libcupti: str, way: int) -> None:
        self._lib = ctypes.PyDLL(str(library))  # entries and exits keep the GIL, as cuptiprof's do
        self._libcupti, self._way = libcupti.encode(), way
        self.seen = 0
        """after ``stop``: launches that callbacks saw, or IDs that were pushed"""

    def start(self) -> None:
        """Raises OSError with CUPTI's result code."""
        if (rc := self._lib.join_start(self._libcupti, self._way)) != 0:
            raise OSError(f"joining: CUPTI result {rc}")

    def stop(self) -> None:
        """Raises OSError with CUPTI's result code."""
        seen = ctypes.c_uint64()
        if (rc := self._lib.join_stop(ctypes.byref(seen))) != 0:
            raise OSError(f"joining: CUPTI result {rc}")
        self.seen = seen.value

    def region(self, name: str) -> Joining:
        """What a step opens; the name goes nowhere."""
        return self

    def __enter__(self) -> Joining:
        self._lib.join_enter()
        return self

    def __exit__(self, *error: object) -> None:
        self._lib.join_exit()


class EmptyKernel:
    """An empty kernel on device 0, launched through the driver API from C; any thread."""

    def __init__(self, library: Path) -> None:
        self._lib = ctypes.CDLL(str(library))
        self._check(self._lib.launch_prepare())

    def launch(self, count: int) -> None:
        self._check(self._lib.launch_loop(count))

    def launch_timed(self, count: int) -> npt.NDArray[np.uint32]:
        """Time of each launch call, ns. Shape (count,)."""
        ns = np.empty(count, np.uint32)
        self._check(self._lib.launch_timed(count, ns.ctypes.data_as(ctypes.c_void_p)))
        return ns

    def synchronize(self) -> None:
        self._check(self._lib.launch_synchronize())

    @staticmethod
    def _check(rc: int) -> None:
        if rc != 0:
            raise OSError("no CUDA driver" if rc == -1 else f"CUDA driver: CUresult {rc}")


if __name__ == "__main__":
    made = build()
    print(made.name if isinstance(made, Path) else made)
    sys.exit(0 if isinstance(made, Path) else 1)
