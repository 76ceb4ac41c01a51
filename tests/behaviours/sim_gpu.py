"""The stand-in as a GPU for scenarios, through the runtime's calls."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from kernels import entry_name

from cuptiprof.sim.sim_device import Flag, Op, SimDevice


class SimGpu:
    """``SimDevice`` as a ``Gpu``. Times and values are exact; it has no memory, and counts executions itself."""

    device = "sim"
    simulated = True
    exact_times = True

    def __init__(self) -> None:
        self._sim = SimDevice()
        self._numbers = itertools.count(32)  # of streams, events and graphs
        self._prepared: set[str] = set()
        self._capture = threading.local()

    def prepare(self, *names: str) -> None:
        self._prepared.update(names)

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        *,
        count: int = 1,
        stream: int = 0,
        duration_ns: int = 0,
        shared: int = 0,
    ) -> None:
        # A driver could not load it now; better to hear of it here.
        assert name in self._prepared or not getattr(self._capture, "on", False), f"{name} was not prepared"
        self._sim.launch(
            entry_name(name),
            grid,
            block,
            count=count,
            stream=stream,
            duration_ns=duration_ns,
            dynamic_shared_memory=shared,
        )

    def launch_refused(self, name: str) -> None:
        self._sim.launch(entry_name(name), return_value=1)

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        self._sim.call(Op.MEMCPY, bytes=size, copy_kind=kind, stream=stream, flags=Flag.ASYNC)

    def set(self, value: int, size: int, stream: int = 0) -> None:
        self._sim.call(Op.MEMSET, bytes=size, value=value, stream=stream, flags=Flag.ASYNC)

    def allocate(self, size: int) -> int:
        address = next(self._numbers) << 20
        self._sim.call(Op.ALLOC, bytes=size, address=address)
        return address

    def free(self, address: int) -> None:
        self._sim.call(Op.FREE, address=address)

    def stream(self) -> int:
        stream = next(self._numbers)
        self._sim.call(Op.STREAM_CREATE, stream=stream)
        return stream

    def order(self, first: int, then: int) -> None:
        event = next(self._numbers)
        self._sim.call(Op.EVENT_RECORD, event=event, stream=first)
        self._sim.call(Op.STREAM_WAIT_EVENT, event=event, stream=then)

    def graph(self, body: Callable[[int], None]) -> int:
        graph, stream = next(self._numbers), self.stream()
        self._sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=stream)
        self._capture.on = True
        try:
            body(stream)
        finally:
            self._capture.on = False
            self._sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=stream)
        return graph

    def run_graph(self, graph: int, stream: int = 0) -> None:
        self._sim.call(Op.GRAPH_LAUNCH, graph_id=graph, stream=stream)

    def synchronize(self) -> None:
        self._sim.synchronize()

    def profiler_start(self) -> None:
        self._sim.call(Op.PROFILER_START)

    def profiler_stop(self) -> None:
        self._sim.call(Op.PROFILER_STOP)

    def executed(self) -> int:
        return self._sim.truth()["kernels"]

    def instructions(
        self, name: str, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (128, 1, 1)
    ) -> float:
        op = self._sim.ops(1, Op.KERNEL, name=entry_name(name), grid=grid, block=block)
        return float(self._sim.true_metric("smsp__inst_executed.sum", op)[0])
