"""What all ways of measuring share: the call, the sample, the order of candidates."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cuptiprof.device.gpu import Meter

Tick = Callable[[], None]
"""Called between samples: it reads the clocks now and then."""


@dataclass
class MeasuredCall:
    """A function under measurement, and what a strategy keeps with it."""

    name: str
    function: Callable[[], object]
    setup: Callable[[], object] | None = None
    """called before each sample, outside of the time"""
    label: str = ""
    """region under which its GPU work is found"""
    batch: int = 1
    """calls a sample"""
    copies: int = 1
    """of its arguments, which calls take in turn"""
    launches: bool = True
    """whether it gives the GPU work, as far as is known"""
    records: int = 0
    """kernels, copies and sets of one call, as far as is known"""
    streams: int = 1
    """that its work uses, as far as is known"""
    synchronizes: bool = False
    """it waits for the GPU, as far as is known"""
    longest_ns: float = 0.0
    """its longest kernel, copy or set; 0: not known"""
    hold_ns: int = 0
    """for which the stream is held while it is given a sample; 0: it is not"""
    paced: int = 0
    """samples that lasted no longer than the host took to launch them"""
    notes: list[str] = field(default_factory=list)
    """what the strategy has to say to a reader"""
    step_ns: float | None = None
    """of the clock that its samples are read from; None: not known"""
    kept: Any = None
    """the strategy's own: a captured graph"""
    agree: Callable[[float], float] = float
    """the largest of all ranks that measure together; of what decides how often the function is called"""

    @property
    def tick(self) -> float | None:
        """Resolution of its samples, ns of a call."""
        return None if self.step_ns is None else self.step_ns / self.batch

    def run_unmeasured(self) -> None:
        """Once, as the strategy runs it, so that caches are as the call itself leaves them."""
        if self.setup is not None:
            self.setup()
        (self.kept or self.function)()


@dataclass(frozen=True)
class Sample:
    """One sample: ns of a call, when it was taken, and where the strategy knows them span and pieces.

    Attributes:
        value: ns of one call.
        at: the host's clock when it began, ns.
        span: ns from the first start to the last end of the call's GPU work; NaN: not known.
        pieces: (name, executions, ns) of the call's kernels, copies and sets.
        reported: other numbers that the function gave with its own time.
        sm_hz: the SM clock meanwhile; NaN: not known.
        doubt: why the sample is not to be used; empty: it is.
    """

    value: float
    at: int
    span: float = math.nan
    pieces: tuple[tuple[str, int, float], ...] = field(default=())
    doubt: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)
    sm_hz: float = math.nan


class Strategy(abc.ABC):
    """A way of measuring. Objects hold options only; what belongs to a function is in its :class:`MeasuredCall`."""

    name: ClassVar[str]
    needs_gpu_work: ClassVar[bool] = True
    """a function that launches nothing is refused"""
    can_be_cold: ClassVar[bool] = True
    times_work: ClassVar[bool] = True
    """the GPU's work is in the time, so that rates can be told"""
    clock_step_ns: ClassVar[float | None] = None
    """of the clock of a real GPU that it reads; None: not known, or found as it is read"""

    def prepare(  # noqa: B027  nothing to prepare is the usual case
        self, gpu: Meter, call: MeasuredCall, estimate_ns: float, cold: bool
    ) -> None:
        """Before the first sample of a function: decide on its batch, capture it.

        Args:
            estimate_ns: wall time of one call, from the warm-up.
        """

    @abc.abstractmethod
    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        """`count` samples of each call, in turn: one list a call, each in the order taken. `tick` is called between rounds."""


def williams_square(calls: int) -> tuple[tuple[int, ...], ...]:
    """Orders of the numbers below `calls` in which each stands in each place, and follows each other one, equally often.

    `calls` rows; twice as many for an odd number. Williams, Experimental Designs Balanced for the Estimation of Residual Effects
    of Treatments, Australian Journal of Scientific Research A 2 (1949): 0 1 n-1 2 n-2 ..., and each row one more than the last.
    """
    first = [0, *(i // 2 + 1 if i % 2 == 0 else calls - 1 - i // 2 for i in range(calls - 1))]
    rows = [tuple((start + i) % calls for i in first) for start in range(calls)]
    return tuple(rows if calls % 2 == 0 else [*rows, *(row[::-1] for row in rows)])


def cycle_of(calls: int) -> int:
    """Rounds after which `orders` has given every call every place."""
    return 2 * len(williams_square(calls))


def orders(calls: int, count: int) -> Iterator[Sequence[int]]:
    """The order of each round: a row of a Williams square, then the same backwards, then the next row.

    The two rounds of a row cancel a linear drift of the machine for every pair of calls, as A B B A does. The rows change who
    follows whom: in A B C C B A for ever, A and C follow themselves every second time and B never does.
    """
    rows = williams_square(calls)
    for i in range(count):
        row = rows[i // 2 % len(rows)]
        yield row if i % 2 == 0 else row[::-1]


def before_sample(gpu: Meter, call: MeasuredCall, cold: bool, among_others: bool) -> None:
    """Set-up, and the caches as wanted: cold, or as the call itself leaves them.

    Args:
        among_others: another call ran before this one. What that left in the caches is none of this call's doing, so it runs
            once unmeasured; a call alone follows itself anyway.
    """
    if among_others and not cold:
        call.run_unmeasured()
    if call.setup is not None:
        call.setup()
    if cold:
        gpu.flush_l2()
        gpu.synchronize()  # the function may work in another stream: the write would go on beside it


def repeated(function: Callable[[], object], count: int) -> Callable[[], None]:
    """`count` calls in a row with as little between them as Python allows."""
    from itertools import repeat

    def run() -> None:
        for _ in repeat(None, count):
            function()

    return run
