"""Another user of CUPTI that shares it, as XLA's profiler and cupti-python do from 13.3 on: a subscriber with calls of its own."""

from __future__ import annotations

import ctypes
import time
from typing import Any, ClassVar

from cuptiprof.sim.sim_device import library_path

KERNEL, MEMCPY, RUNTIME = 10, 1, 5  # CUpti_ActivityKind
BUFFER_SIZE, ZEROED, PER_THREAD, STATE, LATENCY, THREAD_IDS, CLOCK = 0, 5, 9, 12, 15, 21, 22  # CUpti_ActivityAttribute
_BYTES = 1 << 16

_Request = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
)
_Complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
_Clock = ctypes.CFUNCTYPE(ctypes.c_uint64)


class _Params(ctypes.Structure):
    _fields_: ClassVar = [
        ("structSize", ctypes.c_size_t),
        ("subscriberName", ctypes.c_char_p),
        ("oldSubscriberName", ctypes.c_void_p),
        ("oldSubscriberSize", ctypes.c_size_t),
        ("allowMultipleSubscribers", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 7),
    ]


class SharingClient:
    """Counts the records that reach it, by kind, and the launches it is called back for."""

    _kept: ClassVar[list[object]] = []  # CUPTI may call to the end of the process

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(str(library_path()))
        self.subscriber = ctypes.c_void_p()
        self.kinds: list[int] = []
        self.strangers = 0
        self.callbacks = 0
        self.starts: list[int] = []  # of kernels
        self._buffers: dict[int, Any] = {}
        self._functions = (_Request(self._request), _Complete(self._complete), _Callback(self._called))
        self._clock = _Clock(lambda: time.monotonic_ns() + 10**15)
        self._kept.append(self)

    def _request(self, buffer: Any, size: Any, records: Any, _info: int) -> None:
        memory = ctypes.create_string_buffer(_BYTES)
        self._buffers[ctypes.addressof(memory)] = memory
        buffer[0], size[0], records[0] = ctypes.addressof(memory), _BYTES, 0

    def _complete(self, buffer: int, _size: int, valid: int, _info: int) -> None:
        memory = self._buffers.pop(buffer, None)  # lives until it is read
        if memory is None:
            self.strangers += 1
            return
        record = ctypes.c_void_p()
        while (
            self.lib.cuptiActivityGetNextRecord_v2(
                self.subscriber, ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
            )
            == 0
        ):
            assert record.value
            self.kinds.append(ctypes.c_uint32.from_address(record.value).value)
            if self.kinds[-1] == KERNEL:
                self.starts.append(ctypes.c_uint64.from_address(record.value + 16).value)

    def _called(self, *_arguments: Any) -> None:
        self.callbacks += 1

    def subscribe(self) -> int:
        params = _Params(ctypes.sizeof(_Params), b"other", None, 0, 1)
        status = self.lib.cuptiSubscribe_v2(
            ctypes.byref(self.subscriber), self._functions[2], None, ctypes.byref(params)
        )
        assert isinstance(status, int)
        return status

    def start(self, *kinds: int) -> None:
        assert self.subscribe() == 0
        assert self.lib.cuptiActivityRegisterCallbacks_v2(self.subscriber, *self._functions[:2]) == 0
        for kind in kinds or (KERNEL, RUNTIME):
            assert self.lib.cuptiActivityEnable_v2(self.subscriber, kind, None) == 0

    def stop(self) -> None:
        for kind in (KERNEL, MEMCPY, RUNTIME):
            assert self.lib.cuptiActivityDisable_v2(self.subscriber, kind, None) == 0
        assert self.lib.cuptiActivityFlushAll(1) == 0
        assert self.lib.cuptiUnsubscribe(self.subscriber) == 0

    def use_its_clock(self) -> None:
        clock = ctypes.cast(self._clock, ctypes.c_void_p)
        size = ctypes.c_size_t(ctypes.sizeof(clock))
        assert (
            self.lib.cuptiActivitySetAttribute_v2(self.subscriber, CLOCK, ctypes.byref(size), ctypes.byref(clock)) == 0
        )

    def attribute(self, which: int) -> int:
        value = ctypes.c_uint64(0)
        size = ctypes.c_size_t(8)
        assert (
            self.lib.cuptiActivityGetAttribute_v2(self.subscriber, which, ctypes.byref(size), ctypes.byref(value)) == 0
        )
        return value.value

    def settings(self) -> list[int]:
        return [self.attribute(which) for which in (BUFFER_SIZE, ZEROED, PER_THREAD, LATENCY, THREAD_IDS)]

    def dropped(self) -> int:
        n = ctypes.c_size_t()
        assert self.lib.cuptiActivityGetNumDroppedRecords_v2(self.subscriber, None, 0, ctypes.byref(n)) == 0
        return n.value
