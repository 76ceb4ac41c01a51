"""What a probe is: work whose counters follow from its launch parameters by arithmetic.

A probe says twice what will happen, in different words: each launch carries the raw counts it causes (what the
simulated device is given), and the probe states the metrics a user would read. Only the way from one to the other,
the whole profiler, is under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuptiprof.verify.kernel_launch import Buffer, KernelLaunch, Values
from cuptiprof.verify.machine import Machine

if TYPE_CHECKING:
    from cuptiprof.data.result import Result


@dataclass(frozen=True)
class Expected:
    """One number and how far off it may be.

    Attributes:
        metric: a metric's name, or another quantity that the probe measures.
        value: in the metric's own unit, or how it follows from other measured numbers.
        why: how it is known.
        tolerance: allowed relative deviation; margin: allowed absolute one; the larger counts. Both 0: exact.
        launch: which launch of the probe; minus: the number is the difference to that launch's.
        hardware_only: means nothing on the simulated device.
        or_more: the number may be larger by any amount.
    """

    metric: str
    value: float | Callable[[Values], float]
    why: str
    tolerance: float = 0.0
    margin: float = 0.0
    launch: int = 0
    minus: int | None = None
    hardware_only: bool = False
    or_more: bool = False

    @property
    def key(self) -> str:
        """Name of the number: the metric, and of which launch where it is not the first."""
        if self.minus is not None:
            return f"{self.metric}[{self.launch}]-[{self.minus}]"
        return f"{self.metric}[{self.launch}]" if self.launch else self.metric

    def allowed(self, value: float) -> float:
        """Largest absolute deviation from `value` that is right."""
        rounding = 1e-9 * abs(value)  # sums and quotients of doubles
        return max(self.tolerance * abs(value), self.margin, rounding)


@dataclass(frozen=True)
class Counted:
    """A probe of hardware counters on one machine: launches, one after the other, each counted."""

    launches: tuple[KernelLaunch, ...]
    expected: tuple[Expected, ...]
    words: Mapping[str, Buffer] = field(default_factory=dict)  # quantity -> buffer whose first word it is, afterwards


@dataclass(frozen=True)
class Traced:
    """A probe of activity records on one machine: any work, and what is measured in its result."""

    work: Callable[[Machine], None]
    measure: Callable[[Result], Values]
    expected: tuple[Expected, ...]


@dataclass(frozen=True)
class Measured:
    """A probe that opens its own sessions: they give the numbers, and in words what CUPTI refused."""

    measure: Callable[[Machine], tuple[Values, str]]
    expected: tuple[Expected, ...]


class NotHereError(Exception):
    """A probe cannot run on this machine; the text says why. Not a failure."""


@dataclass(frozen=True)
class Probe:
    """A probe by name; `plan` makes it for a machine, or raises :class:`NotHereError`."""

    name: str
    subject: str
    what: str
    plan: Callable[[Machine], Counted | Traced | Measured]
