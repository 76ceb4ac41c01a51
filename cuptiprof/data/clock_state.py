"""A reading of a GPU's clocks, and what reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from cuptiprof.errors import BenchError

# nvml.h (NVML 13), nvmlClocksEventReason*: what holds the clocks down against the program's will. The lower four bits are also CUPTI's.
SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
POWER_CAP = 0x04
"""nvmlClocksEventReasonSwPowerCap: the usual state of a GPU under a large matrix product, so not a fault of the run."""
HOLDS = {**SLOWDOWNS, POWER_CAP: "power cap", 0x10: "sync boost", 0x100: "display clock setting"}
"""All that holds clocks but what was asked for: an idle GPU (0x01) and clocks that somebody set (0x02) are no events."""
HELD_TIMES = {
    "power_cap_time": "power cap",
    "sync_boost_time": "sync boost",
    "software_thermal_time": "software thermal slowdown",
    "hardware_thermal_time": "hardware thermal slowdown",
    "power_brake_time": "power brake",
}
"""Counters of ``system_samples`` of how long each held the clocks, where the driver counts it."""

ClockTarget: TypeAlias = Literal["base", "max"] | int
"""What the SM clock is locked to: what the board keeps up under any load, its highest, or MHz."""


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
    """Reads and locks the clocks of a GPU, or says why it cannot."""

    why_not: str

    def read(self) -> ClockState | None: ...

    def others(self) -> list[int]:
        """Process IDs of other programs on the GPU."""

    def lock(self, target: ClockTarget) -> None:
        """Lock the SM clock. Raises BenchError: it cannot be."""

    def unlock(self) -> None:
        """The clock is the GPU's own again. Raises BenchError: it cannot be."""

    def energy_j(self) -> float | None:
        """What the board has used so far, J; it moves every 20 to 100 ms. None: it does not tell."""


@dataclass
class NoClocks:
    """Clocks that cannot be read, and the reason."""

    why_not: str

    def read(self) -> ClockState | None:
        return None

    def others(self) -> list[int]:
        return []

    def lock(self, target: ClockTarget) -> None:
        raise cannot_lock(self.why_not or "there is no GPU")

    def unlock(self) -> None:
        """Nothing is locked."""

    def energy_j(self) -> float | None:
        return None


def cannot_lock(why: str, hint: str = "leave lock_clocks= out") -> BenchError:
    """What is said of clocks that cannot be locked."""
    return BenchError(f"the clocks cannot be locked: {why}", hint=hint)
