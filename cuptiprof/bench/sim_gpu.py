"""The simulated device as the harness uses it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from cuptiprof.bench.gpu import DEFAULT_L2, FLUSH_FACTOR, cannot_capture
from cuptiprof.data.clock_state import ClockReader
from cuptiprof.device.devices import Device, SimulatedDevice
from cuptiprof.device.driver import DeviceAttribute, Driver
from cuptiprof.errors import CuptiprofError
from cuptiprof.sim.sim_device import Flag, Op


class SimGpu:
    """The simulated device. Its clock is what the device was opened with; the harness opens a virtual one."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device: Device | None = device
        self.ordinal = 0
        self.chip = device.chip
        self.clocks: ClockReader = device.clocks
        self.flush_bytes = FLUSH_FACTOR * DEFAULT_L2
        self._sim = device.sim
        self._graphs = 0
        self.now = device.sim.now if device.virtual_clock else time.perf_counter_ns

    def synchronize(self) -> None:
        self._sim.synchronize()

    def flush_l2(self) -> None:
        self._sim.call(Op.MEMSET, bytes=self.flush_bytes, flags=Flag.ASYNC)

    def events(self, count: int) -> Sequence[Any]:
        return range(1, count + 1)

    def record(self, event: Any) -> None:
        self._sim.call(Op.EVENT_RECORD, event=event)

    def elapsed_ns(self, first: Any, second: Any) -> float:
        return float(self._sim.event_time(second) - self._sim.event_time(first))

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        self._graphs += 1
        graph = 1_000_000 + self._graphs  # apart from those that a script numbers itself
        self._sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph)
        try:
            function()
        except CuptiprofError as e:
            raise cannot_capture(e.message) from e
        finally:
            with contextlib.suppress(CuptiprofError):
                self._sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph)
        return self._sim.prepare(self._sim.ops(1, Op.GRAPH_LAUNCH, graph_id=graph))

    def attribute(self, which: DeviceAttribute) -> int:
        return Driver(self._sim.library).attribute(which)
