"""What a scenario asks of a GPU beyond the package's face of one: kernels of any name, whose effects and instructions are known."""

from __future__ import annotations

from typing import Protocol

from cuptiprof.device.gpu import Dim3, Gpu

LARGEST_COPY = 1 << 20
"""Bytes; memory for copies and sets is allocated once, before anything is traced."""


class ScenarioGpu(Gpu, Protocol):
    """One GPU, implemented over the stand-in and over the driver. ``launch`` takes any name: the device calls the kernel
    ``kernels.entry_name(name)``, and it lasts at least ``duration_ns``.

    A kernel's code depends on its name: two names have different numbers of instructions. Each launch loads one word a
    thread and adds 1 to a count in device memory, which ``executed`` reads.
    """

    simulated: bool
    """What a result must say of itself."""

    exact_times: bool
    """A kernel's record lasts exactly as long as the kernel was told to."""

    def prepare(self, *names: str) -> None:
        """Load these kernels. Others are loaded at their first launch, which takes milliseconds and cannot be captured."""

    def launch_refused(self, name: str) -> None:
        """A launch that the driver refuses; the program goes on."""

    def profiler_start(self) -> None:
        """cuProfilerStart, as cudaProfilerStart calls it."""

    def profiler_stop(self) -> None: ...

    def executed(self) -> int:
        """Kernel executions whose effect the program can see. Compare two readings of one session."""

    def instructions(self, name: str, grid: Dim3 = (1, 1, 1), block: Dim3 = (128, 1, 1)) -> float:
        """Warp instructions of one launch without a duration (``inst_executed``). Not while a session runs."""
