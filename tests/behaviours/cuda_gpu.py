"""The driver as a GPU for scenarios: kernels of any name, made as PTX."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from gpu import DEVICE_TO_HOST, HOST_TO_DEVICE, LARGEST_COPY
from kernels import COUNT_OFFSET, MEMORY_BYTES, entry_name, ptx

import cuptiprof
from cuptiprof.device.driver import Driver
from cuptiprof.errors import CuptiError


class Profiler(Protocol):
    """cuProfilerStart and cuProfilerStop."""

    def __call__(self, on: bool) -> None: ...


class DriverProfiler:
    """cuProfilerStart and Stop of the installed driver, with `context` current."""

    def __init__(self, context: int) -> None:
        self._driver, self._context = Driver(), context

    def __call__(self, on: bool) -> None:
        with self._driver.context(self._context):
            self._driver.call("cuProfilerStart" if on else "cuProfilerStop")


class CudaGpu:
    """A ``_core.ProbeDevice`` as a ``Gpu``. Nothing is asked of its times but tolerances, whatever `probe` is.

    Args:
        probe: the device, or what stands for it.
        device: for ``profile(device=...)``.
        profiler: starts (True) and stops (False) profiling as the program does.
        simulated: `probe` gives its calls to the stand-in.
    """

    exact_times = False

    def __init__(self, probe: Any, device: str, profiler: Profiler, *, simulated: bool = False) -> None:
        self.device = device
        self.simulated = simulated
        self._probe = probe
        self._profiler = profiler
        self._memory = probe.allocate(MEMORY_BYTES)  # zeroed
        self._copies = {
            "host": probe.allocate_host(LARGEST_COPY),
            "to": probe.allocate(LARGEST_COPY),
            "from": probe.allocate(LARGEST_COPY),
        }
        self._loading = threading.Lock()  # guards _loaded
        self._loaded: set[str] = set()
        self._instructions: dict[tuple[Any, ...], float] = {}

    def prepare(self, *names: str) -> None:
        with self._loading:
            missing = [n for n in dict.fromkeys(names) if n not in self._loaded]
            if missing:
                self._probe.load_module(ptx(missing))
                self._loaded.update(missing)

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
        if name not in self._loaded:
            self.prepare(name)
        entry, arguments, launch = entry_name(name), [duration_ns, self._memory], self._probe.launch
        for _ in range(count):
            launch(entry, grid, block, shared, stream, arguments)

    def launch_refused(self, name: str) -> None:
        try:
            self.launch(name, block=(2048, 1, 1))  # no GPU has so many threads in a block
        except CuptiError:
            return
        raise AssertionError("a block of 2048 threads was accepted")

    def copy(self, kind: int, size: int, stream: int = 0) -> None:
        assert size <= LARGEST_COPY
        to = self._copies["host" if kind == DEVICE_TO_HOST else "to"]
        source = self._copies["host" if kind == HOST_TO_DEVICE else "from"]
        self._probe.copy(kind, to, source, size, stream)

    def set(self, value: int, size: int, stream: int = 0) -> None:
        assert size <= LARGEST_COPY
        self._probe.set(self._copies["to"], value, 1, size, stream)

    def allocate(self, size: int) -> int:
        return int(self._probe.allocate(size, False))

    def free(self, address: int) -> None:
        self._probe.free(address)

    def stream(self) -> int:
        return int(self._probe.make_stream())

    def order(self, first: int, then: int) -> None:
        self._probe.order(first, then)

    def graph(self, body: Callable[[int], None]) -> int:
        stream = self._probe.make_stream()
        self._probe.begin_capture(stream)
        try:
            body(stream)
        finally:
            graph = int(self._probe.end_capture(stream))
        return graph

    def run_graph(self, graph: int, stream: int = 0) -> None:
        self._probe.launch_graph(graph, stream)

    def synchronize(self) -> None:
        self._probe.synchronize()

    def profiler_start(self) -> None:
        self._profiler(True)

    def profiler_stop(self) -> None:
        self._profiler(False)

    def executed(self) -> int:
        self._probe.synchronize()
        return int(self._probe.read_word(self._memory + COUNT_OFFSET))

    def instructions(
        self, name: str, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (128, 1, 1)
    ) -> float:
        """Measured once, in the simplest way there is: a session with this launch alone and this metric alone."""
        key = (name, grid, block)
        if key not in self._instructions:
            self.prepare(name)
            with cuptiprof.profile(device=self.device, metrics=["inst_executed"], strategy="replay") as prof:
                self.launch(name, grid, block)
            result = prof.result()
            assert len(result.metric_ranges) == 1, (result, result.metadata["counters"]["events"], result.losses.line())
            (value,) = result.counters["inst_executed"]
            self._instructions[key] = float(value)
        return self._instructions[key]
