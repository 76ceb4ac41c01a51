"""A reading of a GPU's clocks, and what reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
