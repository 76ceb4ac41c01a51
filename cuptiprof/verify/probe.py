"""What a probe is: work whose counters follow from its launch parameters by arithmetic.

A probe says twice what will happen, in different words: each launch carries the raw counts it causes (what the
simulated device is given), and the probe states the metrics a user would read. Only the way from one to the other,
the whole profiler, is under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuptiprof.occupancy import ChipLimits

if TYPE_CHECKING:
    from cuptiprof.result import Result
    from cuptiprof.verify.machine import Machine

Values = Mapping[str, float]
WARP = 32
SECTOR = 32
"""Bytes of a sector, the unit of all cache and DRAM traffic."""


@dataclass(frozen=True)
class Facts:
    """What the arithmetic needs to know of a GPU.

    Attributes:
        chip: CUPTI's name ("GH100"), which decides what metrics exist.
        name: for people.
        compute: compute capability, (9, 0).
        sms: streaming multiprocessors; l2_bytes: size of the L2 cache; memory_bytes: free device memory.
        limits: what an SM can hold; None for a generation that is not known.
        devices: GPUs that can be used; simulated: the stand-in.
    """

    chip: str
    name: str
    compute: tuple[int, int]
    sms: int
    l2_bytes: int
    memory_bytes: int
    limits: ChipLimits | None
    devices: int = 1
    simulated: bool = False


@dataclass(frozen=True, eq=False)
class Buffer:
    """Zeroed device memory; the same object in two launches is the same memory."""

    bytes: int


@dataclass(frozen=True)
class Launch:
    """One launch of an embedded kernel, one-dimensional.

    Attributes:
        kernel: its name; grid: blocks; block: threads a block; shared: bytes of dynamic shared memory.
        args: in order; all are 64 bits wide.
        counts: raw counters this launch causes, summed over the GPU; only the simulated device reads them.
        lasts: ns, for kernels that wait; 0: not known.
        active: share of its time that an SM has warps, on average; resident: warps an SM then holds. Both are again
            for the simulated device only; 0: not said.
    """

    kernel: str
    grid: int
    block: int
    args: tuple[Buffer | int, ...] = ()
    shared: int = 0
    counts: Values = field(default_factory=dict)
    lasts: int = 0
    active: float = 0.0
    resident: float = 0.0

    @property
    def threads(self) -> int:
        """Of the whole grid."""
        return self.grid * self.block

    @property
    def warps(self) -> int:
        """Of the whole grid."""
        return self.grid * (-(-self.block // WARP))


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

    launches: tuple[Launch, ...]
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
