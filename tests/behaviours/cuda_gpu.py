"""The driver as a GPU for scenarios: kernels of any name, made as PTX."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from gpu import LARGEST_COPY
from kernels import COUNT_OFFSET, MEMORY_BYTES, entry_name, ptx

import cuptiprof
from cuptiprof.device.devices import Device
from cuptiprof.device.driver import Driver
from cuptiprof.device.driver_gpu import DriverGpu
from cuptiprof.device.gpu import Dim3
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


class CudaGpu(DriverGpu):
    """A ``DriverGpu`` as a ``ScenarioGpu``. Nothing is asked of its times but tolerances, whatever `probe` is.

    Args:
        device: for ``profile(device=...)``; the simulated one where `probe` gives its calls to the stand-in.
        probe: the native device, or what stands for it.
        profiler: starts (True) and stops (False) profiling as the program does.
    """

    exact_times = False

    def __init__(self, device: Device, probe: Any, profiler: Profiler) -> None:
        super().__init__(device, probe=probe)
        self.simulated = device.simulated
        self._profiler = profiler
        self._words = self.allocate(MEMORY_BYTES, cleared=True)
        self.prepare_copies(LARGEST_COPY)
        self._loading = threading.Lock()  # guards _loaded
        self._loaded: set[str] = set()
        self._instructions: dict[tuple[Any, ...], float] = {}

    def prepare(self, *names: str) -> None:
        with self._loading:
            missing = [n for n in dict.fromkeys(names) if n not in self._loaded]
            if missing:
                self.load_module(ptx(missing))
                self._loaded.update(missing)

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
        if kernel not in self._loaded:
            self.prepare(kernel)
        arguments = [duration_ns, self._words]
        super().launch(entry_name(kernel), grid, block, count=count, stream=stream, shared=shared, arguments=arguments)

    def launch_refused(self, name: str) -> None:
        try:
            self.launch(name, block=(2048, 1, 1))  # no GPU has so many threads in a block
        except CuptiError:
            return
        raise AssertionError("a block of 2048 threads was accepted")

    def profiler_start(self) -> None:
        self._profiler(True)

    def profiler_stop(self) -> None:
        self._profiler(False)

    def executed(self) -> int:
        self.synchronize()
        return self.read_word(self._words + COUNT_OFFSET)

    def instructions(self, name: str, grid: Dim3 = (1, 1, 1), block: Dim3 = (128, 1, 1)) -> float:
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
