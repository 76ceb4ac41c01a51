"""The clocks of the GPU while it is measured, and which samples they spoil."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable
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

CHANGE = 0.03
"""Relative change of the SM clock that spoils samples: several steps of 15 MHz, which the GPU takes all the time."""

STRETCH_NS = 20_000_000
"""The clocks are read at least so often. A reading takes NVML some 50 us, and the GPU has to be waited for."""


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


class ClockLog:
    """Readings while samples are taken, and which samples they spoil."""

    def __init__(self, reader: ClockReader, now: Callable[[], int], synchronize: Callable[[], None]) -> None:
        self._reader, self._now, self._synchronize = reader, now, synchronize
        self._times: list[int] = []
        self._states: list[ClockState | None] = []

    def read(self) -> None:
        """Wait for the GPU and read the clocks."""
        self._synchronize()
        self._times.append(self._now())
        self._states.append(self._reader.read())

    def tick(self) -> None:
        """Read them if the last reading is :data:`STRETCH_NS` ago."""
        if self._now() - self._times[-1] >= STRETCH_NS:
            self.read()

    def judge(self) -> Callable[[int], str]:
        """When a sample began (ns of the host's clock) -> why it is not to be used, or "".

        A sample is spoilt by a slowdown in the reading before or after it, and by an SM clock there that is more than
        :data:`CHANGE` away from the median of all readings. If half of the readings are, no clock is the right one: then
        clocks spoil nothing (and a note says so).
        """
        clocks = sorted(s.sm_mhz for s in self._states if s is not None and s.sm_mhz > 0)
        usual = clocks[len(clocks) // 2] if clocks else 0.0
        moved = [s is not None and abs(s.sm_mhz - usual) > CHANGE * usual for s in self._states]
        wanders = sum(moved) * 2 >= len(moved)
        reasons = []
        for state, off in zip(self._states, moved, strict=True):
            why = state.slowdown if state is not None else ""
            if state is not None and not why and off and not wanders:
                why = f"SM clock at {state.sm_mhz:.0f} MHz, usually {usual:.0f}"
            reasons.append(why)

        def spoilt(at: int) -> str:
            after = bisect.bisect_right(self._times, at)
            around = reasons[max(after - 1, 0) : after + 1]
            return next((why for why in around if why), "")

        return spoilt

    def notes(self) -> list[str]:
        """What a reader must know of the clocks, beyond the samples that were discarded."""
        states = self._known()
        if len(states) < len(self._states):
            why = self._reader.why_not
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
        states = self._known()
        names = ("sm_mhz", "memory_mhz", "temperature", "power_w") if states else ()
        return {n: sorted(getattr(s, n) for s in states)[len(states) // 2] for n in names}

    def _known(self) -> list[ClockState]:
        return [s for s in self._states if s is not None]
