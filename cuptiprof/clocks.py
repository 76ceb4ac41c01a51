"""The clocks of a GPU as NVML reads them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any, Protocol

# nvml.h, nvmlClocksEventReason*: what holds the clocks down against the program's will.
SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
POWER_CAP = 0x04
"""nvmlClocksEventReasonSwPowerCap: the usual state of a GPU under a large matrix product, so not a fault of the run."""


@dataclass(frozen=True)
class ClockState:
    """One reading: SM and memory clock in MHz, temperature in degrees Celsius, power in W, NVML's reasons as bits."""

    sm_mhz: float
    memory_mhz: float = 0.0
    temperature: float = 0.0
    power_w: float = 0.0
    reasons: int = 0

    @property
    def slowdown(self) -> str:
        """What holds the clocks down; empty if nothing does."""
        return ", ".join(text for bit, text in SLOWDOWNS.items() if self.reasons & bit)


class ClockReader(Protocol):
    """Reads the clocks, or says why it cannot."""

    why_not: str

    def read(self) -> ClockState | None: ...

    def others(self) -> list[int]:
        """Process IDs of other programs on the GPU."""


@dataclass
class NoClocks:
    """Clocks that cannot be read, and the reason."""

    why_not: str

    def read(self) -> ClockState | None:
        return None

    def others(self) -> list[int]:
        return []


class NvmlClocks:
    """NVML's readings of one GPU."""

    why_not = ""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle

    def read(self) -> ClockState | None:
        n, h = self._nvml, self._handle
        try:
            sm = n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)
            reasons = n.nvmlDeviceGetCurrentClocksThrottleReasons(h)
        except n.NVMLError as e:
            self.why_not = f"NVML: {e}"
            return None
        memory = temperature = power = 0.0
        with contextlib.suppress(n.NVMLError):  # not every board tells these
            memory = n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM)
            temperature = n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)
            power = n.nvmlDeviceGetPowerUsage(h) / 1000
        return ClockState(sm, memory, temperature, power, reasons)

    def others(self) -> list[int]:
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._nvml.NVMLError:
            return []
        pids = {int(p.pid) for p in running}
        if len(pids) == 1:
            return []  # this one: in a container NVML has other process IDs than the program knows
        return sorted(pids - {os.getpid()})


def nvml_clocks(pci_bus_id: str) -> ClockReader:
    """The reader of the GPU at this PCI address ("00000000:3B:00.0")."""
    try:
        import pynvml
    except ImportError:
        return NoClocks("nvidia-ml-py is not installed (pip install 'cuptiprof[bench]')")
    try:
        pynvml.nvmlInit()
        return NvmlClocks(pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode()))
    except pynvml.NVMLError as e:
        return NoClocks(f"NVML: {e}")
