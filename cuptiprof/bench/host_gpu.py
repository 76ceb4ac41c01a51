"""No GPU at all: what measuring functions of the host alone has in its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from cuptiprof.data.clock_state import ClockReader, NoClocks
from cuptiprof.device.devices import Device
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.errors import BenchError


class HostGpu:
    """``device="host"``: for strategies "cpu", "wall" and "manual"."""

    device: Device | None = None
    ordinal = 0
    chip = ""
    flush_bytes = 0

    def __init__(self) -> None:
        self.clocks: ClockReader = NoClocks("")
        self.now: Callable[[], int] = time.perf_counter_ns
        self.synchronize: Callable[[], None] = lambda: None

    def attribute(self, which: DeviceAttribute) -> int:
        raise _no_gpu("attributes")

    def flush_l2(self) -> None:
        raise _no_gpu("a cold L2")

    def events(self, count: int) -> Sequence[Any]:
        raise _no_gpu("events")

    def record(self, event: Any) -> None:
        raise _no_gpu("events")

    def elapsed_ns(self, first: Any, second: Any) -> float:
        raise _no_gpu("events")

    def passed(self, event: Any) -> bool:
        raise _no_gpu("events")

    def hold(self, ns: int) -> None:
        raise _no_gpu("streams")

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        raise _no_gpu("graphs")


def _no_gpu(what: str) -> BenchError:
    return BenchError(f'device="host" has no GPU, so no {what}', hint='strategy="cpu" or "wall"')
