"""The clocks of the GPU while it is measured, and which samples they spoil."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
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

CHANGE = 0.03
"""Relative change of the SM clock that spoils a block: several steps of 15 MHz, which the GPU takes all the time."""


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
        import os

        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._nvml.NVMLError:
            return []
        return sorted({int(p.pid) for p in running} - {os.getpid()})


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


@dataclass
class ClockLog:
    """Readings around each block of samples, and what they spoil."""

    reader: ClockReader
    blocks: list[tuple[ClockState | None, ClockState | None]] = field(default_factory=list)

    def verdicts(self) -> list[str]:
        """One a block: why its samples are not to be used, or "".

        A block is spoilt by a slowdown at either end, and by an SM clock that is more than :data:`CHANGE` away from the
        median of all blocks' clocks. If that were more than half of them no clock is the right one: then none is.
        """
        out = [_slowdown(pair) for pair in self.blocks]
        clocks = [[s.sm_mhz for s in pair if s is not None and s.sm_mhz > 0] for pair in self.blocks]
        every = sorted(c for pair in clocks for c in pair)
        if not every:
            return out
        usual = every[len(every) // 2]
        moved = [any(abs(c - usual) > CHANGE * usual for c in pair) for pair in clocks]
        if sum(moved) * 2 > len(moved):
            return out
        return [
            why or (f"SM clock at {_range(pair)} MHz, usually {usual:.0f}" if m else "")
            for why, m, pair in zip(out, moved, clocks, strict=True)
        ]

    def notes(self) -> list[str]:
        """What a reader must know of the clocks, beyond the samples that were discarded."""
        states = [s for pair in self.blocks for s in pair if s is not None]
        if not states:
            why = self.reader.why_not
            return [f"clocks were not read: {why}"] if why else []
        out = []
        capped = sum(1 for s in states if s.reasons & POWER_CAP)
        if capped * 10 >= len(states):
            out.append(f"power cap in {100 * capped / len(states):.0f} % of the readings")
        sm = [s.sm_mhz for s in states]
        if max(sm) - min(sm) > 2 * CHANGE * max(sm):
            out.append(f"the SM clock went between {min(sm):.0f} and {max(sm):.0f} MHz")
        return out

    def summary(self) -> dict[str, float]:
        """Median readings: "sm_mhz", "memory_mhz", "temperature", "power_w"; empty where there are none."""
        states = [s for pair in self.blocks for s in pair if s is not None]
        names = ("sm_mhz", "memory_mhz", "temperature", "power_w") if states else ()
        return {n: sorted(getattr(s, n) for s in states)[len(states) // 2] for n in names}


def _slowdown(pair: Sequence[ClockState | None]) -> str:
    return next((s.slowdown for s in pair if s is not None and s.slowdown), "")


def _range(clocks: Sequence[float]) -> str:
    low, high = min(clocks), max(clocks)
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
