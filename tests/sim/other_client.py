"""Another user of CUPTI's activity API in this process, which does not subscribe, as newer Kineto, NVRx and cupti-python do."""

from __future__ import annotations

import ctypes
from typing import ClassVar

from cuptiprof.sim.sim_device import SimDevice

_REQUEST = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))  # fmt: skip
_COMPLETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_BYTES = 1 << 20
KERNEL = 10  # CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
FORCED = 1


class OtherClient:
    """Its own buffers; what came back, and buffers that came back and are not its own."""

    _kept: ClassVar[list[object]] = []  # CUPTI may call to the end of the process

    def __init__(self) -> None:
        self._lib = SimDevice()._lib
        self._mine: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.returned: list[int] = []
        self.strangers: list[int] = []
        self._request, self._complete = _REQUEST(self._requested), _COMPLETE(self._completed)
        self._kept.append(self)

    def register(self) -> None:
        """cuptiActivityRegisterCallbacks: CUPTI forgets the client before."""
        assert self._lib.cuptiActivityRegisterCallbacks(self._request, self._complete) == 0

    def enable(self, kind: int = KERNEL) -> None:
        assert self._lib.cuptiActivityEnable(kind) == 0

    def disable(self, kind: int = KERNEL) -> None:
        assert self._lib.cuptiActivityDisable(kind) == 0

    def flush(self, flag: int = 0) -> None:
        assert self._lib.cuptiActivityFlushAll(flag) == 0

    def held(self) -> int:
        """Buffers given out that did not come back."""
        return len(self._mine) - len(self.returned)

    def contents(self) -> list[bytes]:
        """What lies in its buffers."""
        return [bytes(b) for b in self._mine.values()]

    def _requested(self, buffer, size, max_records) -> None:  # type: ignore[no-untyped-def]
        mine = ctypes.create_string_buffer(_BYTES)
        address = ctypes.addressof(mine)
        self._mine[address] = mine
        buffer[0], size[0], max_records[0] = address, _BYTES, 0

    def _completed(self, context, stream, buffer, size, valid) -> None:  # type: ignore[no-untyped-def]
        (self.returned if buffer in self._mine else self.strangers).append(buffer)
