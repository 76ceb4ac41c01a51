"""What a profiler must leave as it was."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import warnings

import pyarrow

from cuptiprof.sim.sim_device import _library

ATTRIBUTES = range(11)  # CUpti_ActivityAttribute


def fingerprint() -> dict[str, object]:
    """The user's values: none of them may change."""
    return {
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "hooks": (sys.excepthook, threading.excepthook, sys.gettrace(), sys.getprofile(), threading.Thread.start),
        "warnings": list(warnings.filters),
        "switch interval": sys.getswitchinterval(),
    }


def cupti_settings() -> dict[str, int]:
    """CUPTI's settings as its getters give them."""
    lib = _library()
    out: dict[str, int] = {}
    for attribute in ATTRIBUTES:
        value, size = ctypes.c_uint64(0), ctypes.c_size_t(8)
        rc = lib.cuptiActivityGetAttribute(attribute, ctypes.byref(size), ctypes.byref(value))
        out[f"attribute {attribute}"] = value.value if rc == 0 else -rc
    kind = ctypes.c_int()
    lib.cuptiGetThreadIdType(ctypes.byref(kind))
    out["thread IDs"] = kind.value
    return out


def spilling_threads() -> int:
    """Of sessions with keep="spill": one that writes keeps a session that was dropped until the store is written."""
    return sum(t.name == "cuptiprof-spill" for t in threading.enumerate())


def collecting_threads() -> int:
    """Of the collector: they go by the name. Linux's name: Python does not know them."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as name:  # it may end meanwhile
            found += name.read().startswith("cuptiprof")
    return found


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def pool_threads() -> int:
    """Most threads that the libraries we use keep for later: they begin one at a time, as work comes."""
    return pyarrow.cpu_count() + pyarrow.io_thread_count() + (os.cpu_count() or 1)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def settles(value: object, most: int, patience: float = 5.0) -> bool:
    """The count that the function `value` gives is at most `most`, perhaps after threads that end have ended."""
    until = time.monotonic() + patience
    while value() > most:  # type: ignore[operator]
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True
