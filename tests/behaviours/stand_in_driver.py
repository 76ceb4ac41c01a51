"""``_core.ProbeDevice`` without a GPU: what the driver would be told goes to the stand-in, as driver calls.

It refuses what a driver would: kernels of no module, memory that nobody allocated, loading a module while capturing.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Sequence

from kernels import COUNT_OFFSET

from cuptiprof.errors import CuptiError
from cuptiprof.sim.sim_device import DRIVER, Flag, Op, SimDevice

_ENTRY = re.compile(rb"\.visible \.entry ([A-Za-z_$][A-Za-z0-9_$]*)\(\.param \.u64 ns, \.param \.u64 memory\)")


class StandInDriver:
    """The part of ``ProbeDevice`` that ``CudaGpu`` uses. Numbers of streams and graphs are the stand-in's."""

    def __init__(self) -> None:
        self._sim = SimDevice()
        self._numbers = itertools.count(32)
        self._memory: dict[int, int] = {}
        self._pinned: set[int] = set()
        self._kernels: set[str] = set()
        self._captured = threading.local()

    def load_module(self, image: bytes) -> None:
        assert not getattr(self._captured, "graph", 0), "a module cannot be loaded while this thread captures"
        found = [n.decode() for n in _ENTRY.findall(image)]
        assert found and len(found) == image.count(b".entry")
        assert not self._kernels.intersection(found), "loaded twice"
        self._kernels.update(found)

    def _new(self, size: int) -> int:
        address = next(self._numbers) << 24
        self._memory[address] = size
        return address

    def allocate(self, size: int, zeroed: bool = True) -> int:
        address = self._new(size)
        self._sim.call(Op.ALLOC, domain=DRIVER, bytes=size, address=address)
        if zeroed:
            self.set(address, 0, 1, size, 0)
            self.synchronize()
        return address

    def allocate_host(self, size: int) -> int:
        address = self._new(size)
        self._pinned.add(address)
        return address

    def free(self, address: int) -> None:
        self._sim.call(Op.FREE, domain=DRIVER, bytes=self._memory.pop(address), address=address)

    def read_word(self, address: int) -> int:
        assert self._memory[address - COUNT_OFFSET] > COUNT_OFFSET
        return self._sim.truth()["kernels"]

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        arguments: Sequence[int],
    ) -> None:
        assert kernel in self._kernels, f"no module has {kernel}"
        duration, memory = arguments
        assert memory in self._memory
        refused = block[0] * block[1] * block[2] > 1024
        self._sim.launch(
            kernel,
            grid,
            block,
            domain=DRIVER,
            stream=stream,
            duration_ns=duration,
            dynamic_shared_memory=shared,
            return_value=int(refused),
        )
        if refused:
            raise CuptiError("cuLaunchKernel returned CUDA_ERROR_INVALID_VALUE")

    def copy(self, kind: int, destination: int, source: int, size: int, stream: int) -> None:
        assert size <= self._memory[destination] and size <= self._memory[source]
        assert (source in self._pinned, destination in self._pinned) == (kind == 1, kind == 2)
        self._sim.call(Op.MEMCPY, domain=DRIVER, bytes=size, copy_kind=kind, stream=stream, flags=Flag.ASYNC)

    def set(self, destination: int, value: int, width: int, count: int, stream: int) -> None:
        assert width * count <= self._memory[destination]
        self._sim.call(Op.MEMSET, domain=DRIVER, bytes=width * count, value=value, stream=stream, flags=Flag.ASYNC)

    def make_stream(self) -> int:
        stream = next(self._numbers)
        self._sim.call(Op.STREAM_CREATE, domain=DRIVER, stream=stream)
        return stream

    def order(self, first: int, then: int) -> None:
        event = next(self._numbers)
        self._sim.call(Op.EVENT_RECORD, domain=DRIVER, event=event, stream=first)
        self._sim.call(Op.STREAM_WAIT_EVENT, domain=DRIVER, event=event, stream=then)

    def begin_capture(self, stream: int) -> None:
        self._captured.graph = next(self._numbers)
        self._sim.call(Op.GRAPH_BEGIN_CAPTURE, domain=DRIVER, graph_id=self._captured.graph, stream=stream)

    def end_capture(self, stream: int) -> int:
        graph, self._captured.graph = self._captured.graph, 0
        self._sim.call(Op.GRAPH_END_CAPTURE, domain=DRIVER, graph_id=graph, stream=stream)
        return int(graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._sim.call(Op.GRAPH_LAUNCH, domain=DRIVER, graph_id=graph, stream=stream)

    def synchronize(self) -> None:
        self._sim.synchronize(domain=DRIVER)

    def profiler(self, on: bool) -> None:
        """What cuProfilerStart and Stop would do."""
        self._sim.call(Op.PROFILER_START if on else Op.PROFILER_STOP, domain=DRIVER)
