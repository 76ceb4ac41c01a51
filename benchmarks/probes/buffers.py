"""What CUPTI writes into activity buffers, and what comes when collection pauses beside a running kernel."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import RawApi

POISON = 0xAB
SIZE = 64 << 10
KERNELS = 500
CONCURRENT_KERNEL = 10  # CUpti_ActivityKind
ZEROED_OUT_ACTIVITY_BUFFER = 5  # CUpti_ActivityAttribute
FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

_Requested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class _Poisoned:
    """A client whose buffers are full of one byte, each time they are given."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free: list[int] = []
        self.kept: list[Any] = []
        self.records: list[bytes] = []
        self.given = self.recycled = 0
        self.requested, self.completed = _Requested(self._request), _Completed(self._complete)

    def _request(self, buffer: Any, size: Any, most: Any) -> None:
        with self.lock:
            self.given += 1
            if self.free:
                self.recycled += 1
                address = self.free.pop()
            else:
                block = ctypes.create_string_buffer(SIZE + 8)
                self.kept.append(block)
                address = (ctypes.addressof(block) + 7) & ~7
        ctypes.memset(address, POISON, SIZE)
        buffer[0], size[0], most[0] = address, SIZE, 0

    def _complete(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        data = ctypes.string_at(buffer, valid)
        with self.lock:
            self.records.append(data)
            self.free.append(buffer)


def _collected(work: Work, zeroed: int) -> dict[str, Any]:
    api = RawApi(work.device)
    client = _Poisoned()
    value, size = ctypes.c_uint8(zeroed), ctypes.c_size_t(1)
    calls = {
        "register": api.lib.cuptiActivityRegisterCallbacks(client.requested, client.completed),
        "attribute": api.lib.cuptiActivitySetAttribute(ZEROED_OUT_ACTIVITY_BUFFER, ctypes.byref(size), ctypes.byref(value)),
        "enable": api.lib.cuptiActivityEnable(CONCURRENT_KERNEL),
    }  # fmt: skip
    for _ in range(3):
        work.small(KERNELS)
        work.synchronize()
        api.lib.cuptiActivityFlushAll(FORCED)
    api.lib.cuptiActivityDisable(CONCURRENT_KERNEL)
    api.lib.cuptiActivityFlushAll(FORCED)
    value.value = 0
    api.lib.cuptiActivitySetAttribute(ZEROED_OUT_ACTIVITY_BUFFER, ctypes.byref(size), ctypes.byref(value))
    data = b"".join(client.records)
    _KEPT.append(client)  # CUPTI may call once more
    return {
        "calls": calls,
        "buffers": client.given,
        "given again": client.recycled,
        "bytes": len(data),
        "bytes of poison in records": data.count(bytes([POISON]) * 4) * 4,
    }


_KEPT: list[_Poisoned] = []


def poisoned_buffers(work: Work) -> dict[str, Any]:
    """Does CUPTI write every byte of a record, with ZEROED_OUT_ACTIVITY_BUFFER set and not, into buffers full of 0xAB?

    Assumed: with it not set nothing of the buffer is left; with it set fields may stay as they were.
    """
    out: dict[str, Any] = {"not set": _collected(work, 0), "set": _collected(work, 1)}
    out["as assumed"] = out["not set"]["bytes of poison in records"] == 0 and out["not set"]["bytes"] > 0
    return out


def _one_long_kernel(work: Work, seconds: float) -> None:
    """A single kernel that runs so long, not waited for."""
    if work.device == "cuda":
        import torch

        torch.cuda._sleep(int(seconds * 1.5e9))  # cycles
        return
    from cuptiprof.sim.sim_device import SimDevice

    SimDevice().launch("long", duration_ns=int(seconds * 1e9))


def pause_beside_a_long_kernel(work: Work) -> dict[str, Any]:
    """pause() while a kernel of a second runs: how long does it take, and has the kernel its record, with its times?

    Assumed: pause() waits for it, and nothing is lost.
    """
    seconds = 1.0 if work.device == "cuda" else 0.3
    work.small(1)
    work.synchronize()
    with cuptiprof.profile(device=work.device, activities=["kernel"]) as prof:
        _one_long_kernel(work, seconds)
        begin = time.perf_counter()
        prof.pause()
        paused = time.perf_counter() - begin
        work.small(3)
        work.synchronize()
        prof.resume()
        work.small(2)
        work.synchronize()
    result = prof.result()
    durations = sorted(float(d) / 1e6 for d in result.kernels["duration"])
    return {
        "pause_ms": round(paused * 1e3, 2),
        "kernels": len(result.kernels),
        "longest_ms": round(durations[-1], 3) if durations else None,
        "without_times": result.metadata["launches"]["without_times"],
        "losses": {k: v for k, v in dict(result.losses).items() if v},
        "as assumed": len(result.kernels) == 3 and not any(dict(result.losses).values()),
    }


PROBES = [poisoned_buffers, pause_beside_a_long_kernel]
