"""The simulated device as a GPU, through the runtime's calls."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.data.clock_state import ClockReader
from cuptiprof.device.clock_kernel import CLOCK_STAMP
from cuptiprof.device.devices import Device, SimulatedDevice
from cuptiprof.device.driver import DeviceAttribute, Driver
from cuptiprof.device.gpu import DEFAULT_L2, FLUSH_FACTOR, Dim3, cannot_capture
from cuptiprof.device.hold import HOLD
from cuptiprof.errors import CuptiprofError
from cuptiprof.sim.sim_device import Flag, Op

# Of streams, events, graphs and memory: apart from those that a script numbers itself.
_numbers = itertools.count(1_000_000)
STAMP_NS = 2_000
"""What a stamp's kernel takes: about what the shortest ones do."""


class SimGpu:
    """The simulated device. Kernels have any name and last as long as they are told; it has no memory behind its addresses.

    Its clock is what the device was opened with; the harness opens a virtual one.

    Args:
        stream: number of the one that functions under measurement work in.
    """

    def __init__(self, device: SimulatedDevice, stream: int = 0) -> None:
        self.device: Device | None = device
        self.ordinal = 0
        self.chip = device.chip
        self.clocks: ClockReader = device.clocks
        self._cycles = device.clocks.cycles
        self._virtual = device.virtual_clock
        self.why_no_stamps = ""
        self.flush_bytes = FLUSH_FACTOR * DEFAULT_L2
        self.sim = device.sim
        self._stream = stream
        self._events: list[int] = []
        self.now: Callable[[], int] = device.sim.now if device.virtual_clock else time.perf_counter_ns
        self.synchronize: Callable[[], None] = device.sim.synchronize
        self._stamps: list[int] = []  # events that pass when the kernel of a stamp ends
        self._stamp_ops = np.concatenate(
            [
                self.sim.ops(
                    1, Op.KERNEL, name=CLOCK_STAMP, grid=(1, 1, 1), block=(1, 1, 1), duration_ns=STAMP_NS, stream=stream
                ),
                self.sim.ops(1, Op.EVENT_RECORD, stream=stream),
            ]
        )

    def pause(self, seconds: float) -> None:
        if self._virtual:
            self.sim.advance(self.sim.now() + round(1e9 * seconds))
        else:
            time.sleep(seconds)

    def attribute(self, which: DeviceAttribute) -> int:
        return Driver(self.sim.library).attribute(which)

    def launch(
        self,
        kernel: str,
        grid: Dim3 = (1, 1, 1),
        block: Dim3 = (128, 1, 1),
        *,
        count: int = 1,
        stream: int = 0,
        shared: int = 0,
        arguments: Sequence[int] = (),
        duration_ns: int = 0,
    ) -> None:
        fields = {"stream": stream, "duration_ns": duration_ns, "dynamic_shared_memory": shared}
        self.sim.launch(kernel, grid, block, count=count, **fields)

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        self.sim.call(Op.MEMCPY, bytes=size, copy_kind=kind, stream=stream, flags=Flag.ASYNC)

    def copy_peer(self, size: int) -> None:
        raise AssertionError("one simulated GPU")

    def set(self, value: int, count: int, *, width: int = 1, stream: int = 0) -> None:
        self.sim.call(Op.MEMSET, bytes=width * count, value=value, stream=stream, flags=Flag.ASYNC)

    def prepare_copies(self, size: int) -> None:
        pass

    def flush_l2(self) -> None:
        self.set(0, self.flush_bytes)

    def allocate(self, size: int) -> int:
        address = next(_numbers) << 20
        self.sim.call(Op.ALLOC, bytes=size, address=address)
        return address

    def free(self, address: int) -> None:
        self.sim.call(Op.FREE, address=address)

    def release(self) -> None:
        self.synchronize()

    def stream(self) -> int:
        stream = next(_numbers)
        self.sim.call(Op.STREAM_CREATE, stream=stream)
        return stream

    def order(self, first: int, then: int) -> None:
        event = next(_numbers)
        self.sim.call(Op.EVENT_RECORD, event=event, stream=first)
        self.sim.call(Op.STREAM_WAIT_EVENT, event=event, stream=then)

    def events(self, count: int) -> Sequence[Any]:
        self._events.extend(itertools.islice(_numbers, max(0, count - len(self._events))))
        return self._events

    def record(self, event: Any) -> None:
        self.sim.call(Op.EVENT_RECORD, event=event, stream=self._stream)

    def elapsed_ns(self, first: Any, second: Any) -> float:
        return float(self.sim.event_time(second) - self.sim.event_time(first))

    def passed(self, event: Any) -> bool:
        return self.sim.event_time(event) <= self.sim.now()

    def hold(self, ns: int) -> None:
        self.sim.launch(HOLD, duration_ns=ns, stream=self._stream)

    def peak_memory(self, function: Callable[[], object]) -> int | None:
        return None

    def prepare_stamps(self, count: int) -> None:
        self._stamps = list(itertools.islice(_numbers, count))

    def stamp(self, index: int) -> None:
        self._stamp_ops["event"][1] = self._stamps[index]
        self.sim.run(self._stamp_ops)

    def stamps(self, count: int) -> npt.NDArray[np.uint64]:
        times = [self.sim.event_time(event) for event in self._stamps[:count]]
        return np.array([(ns, self._cycles(ns)) for ns in times], np.uint64).reshape(count, 2)

    def graph(self, body: Callable[[int], object]) -> int:
        stream = self.stream()
        return self._captured(stream, lambda: body(stream))

    def _captured(self, stream: int, function: Callable[[], object]) -> int:
        """The graph of what `function` gives to the stream; a capture that fails is ended."""
        graph = next(_numbers)
        self.sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=stream)
        try:
            function()
        except BaseException:
            with contextlib.suppress(CuptiprofError):
                self.sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=stream)
            raise
        self.sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=stream)
        return graph

    def run_graph(self, graph: int, stream: int = 0) -> None:
        self.sim.call(Op.GRAPH_LAUNCH, graph_id=graph, stream=stream)

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        try:
            graph = self._captured(self._stream, function)
        except CuptiprofError as e:
            raise cannot_capture(e.message) from e
        return self.sim.prepare(self.sim.ops(1, Op.GRAPH_LAUNCH, graph_id=graph, stream=self._stream))
