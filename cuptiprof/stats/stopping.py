"""When to stop measuring: rules as objects, joined by ``|`` (any) and ``&`` (all).

Looking at the interval after every sample and stopping when it happens to be narrow makes it too narrow: 95 % intervals
then hold the true median less often, correlated ones in 83 % of the runs (docs/benchmark-statistics.md). So rules look
at few sizes only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from cuptiprof.stats.correlation import Array
from cuptiprof.stats.statistics import CONFIDENCE, median_interval

FIRST_LOOK_SAMPLES = 400
"""Fewer samples do not show a change that takes fifty of them, and an interval that leaves it out is too narrow."""
LOOK_GROWTH = 2.0


@dataclass(frozen=True)
class Stop:
    """Why measuring ended. `converged`: the wanted precision was reached, not only a limit."""

    reason: str
    converged: bool


class Rule(ABC):
    """A stopping rule. It has no state: the same samples and time give the same answer."""

    @abstractmethod
    def __call__(self, samples: Array, elapsed_s: float, tick: float | None = None) -> Stop | None:
        """Stop, or go on (None).

        Args:
            samples: shape (n,), in the order of measuring, any unit.
            elapsed_s: seconds since measuring began.
            tick: resolution of their timer, in their unit, as of ``median_interval``.
        """

    def next_look(self, n: int) -> float:
        """The smallest number of samples above `n` at which the rule may answer otherwise; infinite: it does not count them.

        Blocks of samples end there, so that a rule gets the number it waits for and few more.
        """
        return math.inf

    def __or__(self, other: Rule) -> Rule:
        return AnyOf((self, other))

    def __and__(self, other: Rule) -> Rule:
        return AllOf((self, other))


@dataclass(frozen=True)
class _AtSizes(Rule):
    """Looks at the first `minimum` samples, then at the first `growth` times as many, and so on: never in between.

    Asked with a number of samples in between, it looks at the largest of its sizes below, so it does not matter in what
    blocks the samples come.
    """

    minimum: int = field(default=FIRST_LOOK_SAMPLES, kw_only=True)
    growth: float = field(default=LOOK_GROWTH, kw_only=True)

    def __post_init__(self) -> None:
        if self.minimum < 2 or not 1 < self.growth < math.inf:
            raise ValueError("a rule needs a minimum of 2 samples or more and a growth above 1")

    def size_at(self, n: int) -> int:
        """The largest size up to `n` at which this rule looks; 0: none yet."""
        size, last = self.minimum, 0
        while size <= n:
            size, last = math.ceil(size * self.growth), size
        return last

    def next_look(self, n: int) -> float:
        size = self.minimum
        while size <= n:
            size = math.ceil(size * self.growth)
        return size

    def __call__(self, samples: Array, elapsed_s: float, tick: float | None = None) -> Stop | None:
        size = self.size_at(len(samples))
        return self.look(samples[:size], tick) if size else None

    @abstractmethod
    def look(self, samples: Array, tick: float | None) -> Stop | None:
        """Judge the samples of one of the sizes."""


@dataclass(frozen=True)
class RelativeHalfWidth(_AtSizes):
    """Stop when half of the median's interval is at most `target` of the median (0.005: half a percent).

    Sequential fixed-width intervals: Chow, Robbins, Annals of Mathematical Statistics 36 (1965). Few looks and a
    minimum keep the coverage (see the module), of correlated samples 200 correlation times (``dependence``). Where a tick
    of the clock is wider than the target, it is the tick that is waited for.
    """

    target: float = 0.005
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.target < math.inf or not 0 < self.confidence < 1:
            raise ValueError("a target is above 0, a confidence between 0 and 1")

    def look(self, samples: Array, tick: float | None) -> Stop | None:
        interval = median_interval(samples, self.confidence, tick=tick)
        if math.isnan(interval.tick):
            return Stop("its samples are equal, and the tick of their clock is not known", False)
        if interval.confidence < self.confidence or not interval.settled:
            return None
        if interval.half_width > self.target:
            if interval.coarse and interval.high - interval.low <= 1.5 * interval.tick:
                return Stop(
                    f"the median is known to a tick of the clock, {100 * interval.half_width:.2g} %, "
                    f"after {len(samples)} samples",
                    False,
                )
            return None
        return Stop(
            f"the median is known to {100 * interval.half_width:.2g} % (target {100 * self.target:.3g} %) "
            f"after {len(samples)} samples",
            True,
        )


@dataclass(frozen=True)
class Count(Rule):
    """Stop at `n` samples."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError("a count is 1 or more")

    def next_look(self, n: int) -> float:
        return self.n if self.n > n else math.inf

    def __call__(self, samples: Array, elapsed_s: float, tick: float | None = None) -> Stop | None:
        return Stop(f"{len(samples)} samples (limit {self.n})", False) if len(samples) >= self.n else None


@dataclass(frozen=True)
class TimeLimit(Rule):
    """Stop after `seconds` of measuring. A limit in time looks at no sample, so it does not bias the interval."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ValueError("a time limit is above 0 s")

    def __call__(self, samples: Array, elapsed_s: float, tick: float | None = None) -> Stop | None:
        if elapsed_s < self.seconds:
            return None
        return Stop(f"{elapsed_s:.3g} s (limit {self.seconds:g} s) with {len(samples)} samples", False)


@dataclass(frozen=True)
class AnyOf(Rule):
    """Stop when one of the rules does; the first one that does gives the reason."""

    rules: tuple[Rule, ...]

    def next_look(self, n: int) -> float:
        return min(rule.next_look(n) for rule in self.rules)

    def __call__(self, samples: Array, elapsed_s: float, tick: float | None = None) -> Stop | None:
        return next((stop for rule in self.rules if (stop := rule(samples, elapsed_s, tick))), None)


@dataclass(frozen=True)
class AllOf(Rule):
    """Stop when all of the rules do, for all of their reasons."""

    rules: tuple[Rule, ...]

    def next_look(self, n: int) -> float:
        return min(rule.next_look(n) for rule in self.rules)

    def __call__(self, samples: Array, elapsed_s: float, tick: float | None = None) -> Stop | None:
        stops = []
        for rule in self.rules:
            if (stop := rule(samples, elapsed_s, tick)) is None:
                return None
            stops.append(stop)
        return Stop("; ".join(s.reason for s in stops), any(s.converged for s in stops))


def default_rule(target: float = 0.005, *, maximum: int = 12_800, seconds: float = 3.0) -> Rule:
    """Half a percent of the median, looked at with 400, 800, 1600, ... samples; at most `maximum` samples or `seconds`."""
    return RelativeHalfWidth(target) | Count(maximum) | TimeLimit(seconds)
