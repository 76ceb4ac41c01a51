"""What a measurement is made of. Times are ns, float64."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Scalar = str | int | float | bool | None


class Interval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A median, ns, and the interval that holds the true one at `confidence`."""

    median: float
    low: float
    high: float
    confidence: float = 0.95

    @property
    def half_width(self) -> float:
        """Half of the interval over the median; NaN for a median of 0, and where no interval is claimed (confidence 0)."""
        return (self.high - self.low) / 2 / self.median if self.median and self.confidence else math.nan


class Discard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sample that was taken and not used: its place among all that were taken, ns a call (NaN: unknown), and why."""

    index: int
    value: float
    reason: str


class KernelTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel, copy or set of the function: executions a call, and the median ns that a call spends in it."""

    name: str
    calls: float
    ns: float


class CounterValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric over one call of the function."""

    name: str
    value: float
    unit: str = ""


class Roofline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the function lies under the roofs of the chip. Rates are per s; shares 0 to 1, NaN where not known.

    `bound` is "compute" or "memory": the roof that is met first at this intensity (operations a byte).
    """

    flops: float
    bytes: float
    flop_rate: float
    byte_rate: float
    peak_flop_rate: float
    peak_byte_rate: float
    intensity: float
    bound: str
    share: float
    source: str
