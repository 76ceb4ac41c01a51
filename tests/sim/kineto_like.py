"""Another user of CUPTI in this process, as Kineto is one: its own buffers, its own clock, settings it never puts back."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from cuptiprof.sim.sim_device import library_path

ZEROED, PER_THREAD, BUFFER_SIZE, BUFFERS = 5, 9, 0, 2  # CUpti_ActivityAttribute
KERNEL, MEMCPY, RUNTIME = 10, 1, 5  # CUpti_ActivityKind
DEFAULT_IDS, SYSTEM_IDS = 0, 1  # CUpti_ActivityThreadIdType

_Request = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
_Clock = ctypes.CFUNCTYPE(ctypes.c_uint64)


class KinetoLike:
    """`released`: subscribes at its first profile and never unsubscribes, as torch's Kineto up to August 2026 does;
    else it uses the activity API without subscribing (pytorch/kineto 7a3ba363)."""

    def __init__(self, *, released: bool = True) -> None:
        self.lib = ctypes.CDLL(str(library_path()))
        self.released = released
        self.subscriber = ctypes.c_void_p()
        self.status: int | None = None  # of its one attempt to subscribe: it never makes another
        self.bytes = 0  # of records that reached it
        self._buffers: dict[int, Any] = {}
        self._keep = (_Request(self._request), _Complete(self._complete), _Callback(lambda *_: None))
        # Ticks of a 3 GHz processor since it started: nanoseconds of nothing.
        self._clock = _Clock(lambda: 3 * time.monotonic_ns() + 7)

    def _request(self, buffer: Any, size: Any, records: Any) -> None:
        memory = ctypes.create_string_buffer(1 << 16)
        self._buffers[ctypes.addressof(memory)] = memory
        buffer[0], size[0], records[0] = ctypes.addressof(memory), len(memory), 0

    def _complete(self, _context: int, _stream: int, buffer: int, _size: int, valid: int) -> None:
        self.bytes += valid
        self._buffers.pop(buffer, None)

    def start(self) -> None:
        """CuptiCallbackApi::initCallbackApi (once), configureCuptiTimestampSource, enableCuptiActivities."""
        if self.released and self.status is None:
            self.status = self.lib.cuptiSubscribe(ctypes.byref(self.subscriber), self._keep[2], None)
        self.register_clock()
        self.lib.cuptiActivityRegisterCallbacks(self._keep[0], self._keep[1])
        for kind in (KERNEL, MEMCPY, RUNTIME):
            self.lib.cuptiActivityEnable(kind)

    def stop(self) -> None:
        """disableCuptiActivities, flush; its per-thread flag is cleared, its clock stays."""
        for kind in (KERNEL, MEMCPY, RUNTIME):
            self.lib.cuptiActivityDisable(kind)
        self.lib.cuptiActivityFlushAll(1)
        self.set_attribute(PER_THREAD, 0, ctypes.c_uint8)

    def register_clock(self) -> None:
        self.lib.cuptiActivityRegisterTimestampCallback(self._clock)

    def set_attribute(self, which: int, value: int, kind: type[Any] = ctypes.c_size_t) -> None:
        memory = kind(value)
        size = ctypes.c_size_t(ctypes.sizeof(memory))
        assert self.lib.cuptiActivitySetAttribute(which, ctypes.byref(size), ctypes.byref(memory)) == 0

    def attribute(self, which: int, kind: type[Any] = ctypes.c_size_t) -> int:
        memory = kind()
        size = ctypes.c_size_t(ctypes.sizeof(memory))
        assert self.lib.cuptiActivityGetAttribute(which, ctypes.byref(size), ctypes.byref(memory)) == 0
        return int(memory.value)

    def thread_ids(self) -> int:
        kind = ctypes.c_int()
        assert self.lib.cuptiGetThreadIdType(ctypes.byref(kind)) == 0
        return kind.value

    def timestamp(self) -> int:
        now = ctypes.c_uint64()
        assert self.lib.cuptiGetTimestamp(ctypes.byref(now)) == 0
        return now.value

    def gone(self) -> None:
        """Everything of it out of the process, which no real one does: the next test starts afresh."""
        self.lib.cuptiFinalize()
