"""The stand-in as a GPU for scenarios, through the runtime's calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from kernels import entry_name

from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.device.gpu import Dim3
from cuptiprof.device.sim_gpu import SimGpu
from cuptiprof.sim.sim_device import Op


class StandInGpu(SimGpu):
    """``SimGpu`` as a ``ScenarioGpu``. Times and values are exact; it has no memory, and counts executions itself."""

    simulated = True
    exact_times = True

    def __init__(self) -> None:
        super().__init__(SimulatedDevice())
        self._prepared: set[str] = set()
        self._capture = threading.local()

    def prepare(self, *names: str) -> None:
        self._prepared.update(names)

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
        # A driver could not load it now; better to hear of it here.
        assert kernel in self._prepared or not getattr(self._capture, "on", False), f"{kernel} was not prepared"
        super().launch(
            entry_name(kernel), grid, block, count=count, stream=stream, shared=shared, duration_ns=duration_ns
        )

    def launch_refused(self, name: str) -> None:
        self.sim.launch(entry_name(name), return_value=1)

    def graph(self, body: Callable[[int], object]) -> int:
        self._capture.on = True
        try:
            return super().graph(body)
        finally:
            self._capture.on = False

    def profiler_start(self) -> None:
        self.sim.call(Op.PROFILER_START)

    def profiler_stop(self) -> None:
        self.sim.call(Op.PROFILER_STOP)

    def executed(self) -> int:
        return self.sim.truth()["kernels"]

    def instructions(self, name: str, grid: Dim3 = (1, 1, 1), block: Dim3 = (128, 1, 1)) -> float:
        op = self.sim.ops(1, Op.KERNEL, name=entry_name(name), grid=grid, block=block)
        return float(self.sim.true_metric("smsp__inst_executed.sum", op)[0])
