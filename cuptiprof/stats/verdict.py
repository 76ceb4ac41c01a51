"""Whether a new series of times is faster or slower than a base, the same, or whether one cannot tell.

A difference is claimed only when two unrelated looks agree: the whole interval of the ratio lies beyond the margin, and a
rank test is below alpha. "Same" needs evidence too: the interval lies inside the margin. A difference that is certain while
it is not whether it matters is SMALL. All else is UNSURE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.correlation import Array, finite_samples
from cuptiprof.stats.ranks import RankTest, mann_whitney, pseudo_median, wilcoxon
from cuptiprof.stats.statistics import Ratio, ratio_of_medians
from cuptiprof.stats.ticks import on_ticks, timer_tick

THRESHOLD = 0.01
ALPHA = 0.05
MIN_CONTRASTS = 6


class Kind(str, Enum):
    """What the comparison says of the new series.

    FASTER, SLOWER: by more than the margin. SAME: by less than the margin, if at all. SMALL: there is a difference, but not for
    certain one beyond the margin.
    """

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    SMALL = "SMALL"
    UNSURE = "UNSURE"


@dataclass(frozen=True)
class Verdict:
    """A comparison of a new series with a base.

    Attributes:
        ratio: new / base: above 1 is slower.
        low, high: the interval that holds the true ratio at 1 - alpha; 0 and infinity when there are too few samples.
        p_value: of the rank test, two-sided.
        effect: -1 to 1, above 0 when new times are longer: Cliff's delta; of pairs, the rank-biserial correlation.
        reason: why, in a sentence.
    """

    kind: Kind
    ratio: float
    low: float
    high: float
    p_value: float
    effect: float
    reason: str

    @property
    def differs(self) -> bool:
        """FASTER or SLOWER."""
        return self.kind in (Kind.FASTER, Kind.SLOWER)

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.reason}"


ClockTick = float | None | tuple[float | None, float | None]
"""Resolution of the timer, of both series or of each; None: found."""


def judge(
    base: npt.ArrayLike,
    new: npt.ArrayLike,
    *,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    tick: ClockTick = None,
) -> Verdict:
    """Compare two series of times that were taken one after the other, or in different runs.

    The ratio of medians with its interval (``ratio_of_medians``), the Mann-Whitney test and Cliff's delta
    (``mann_whitney``). SAME: the interval lies inside 1 / (1 + threshold) to 1 + threshold, a test of equivalence:
    Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987). SLOWER, FASTER: all of it lies outside. What
    changed between the two runs but not within them (clocks, temperature, where the buffers lie) looks like a difference
    here: interleave, and use ``judge_pairs``.

    Args:
        base, new: shapes (m,) and (n,), times in the same unit, in the order of measuring.
        threshold: relative difference that does not matter: the margin.
        alpha: how often a claim of a difference may be wrong.
        tick: resolution of the timer, in the unit of the times, or a pair of base's and new's; None: found in the times.

    Raises:
        ValueError: no samples, times that are not finite and above 0, or a threshold, alpha or tick out of range.
    """
    check_limits(threshold, alpha)
    a, b = checked_times(base, "base"), checked_times(new, "new")
    ticks = _ticks(a, b, tick)
    ratio = ratio_of_medians(b, a, 1 - alpha, ticks=ticks[::-1])
    return decide(ratio, mann_whitney(b, a), threshold, alpha, min(a.size, b.size), ticks)


def judge_pairs(
    base: npt.ArrayLike,
    new: npt.ArrayLike,
    *,
    order: Literal["ABBA", "ABAB"] = "ABBA",
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    tick: ClockTick = None,
) -> Verdict:
    """Compare two series whose samples were taken in turns; a drift that is linear over four samples cancels.

    Each round of four gives one contrast of log times (``log_contrasts``). Their pseudo-median is the log ratio, with
    its interval and Wilcoxon's test (``pseudo_median``, ``wilcoxon``). Where a tick hides the noise, the interval reaches
    half a tick of each series further. Verdicts as in ``judge``.
    Source: Cox, Planning of Experiments (1958), 14.2, systematic designs that are free of a linear trend.

    Args:
        base, new: shape (n,) each, times in the same unit, in the order of measuring, taken as `order` says: base[0],
            new[0], new[1], base[1], base[2], ... or base[0], new[0], base[1], new[1], ... An unfinished round is left
            out. Rounds of "ABBA" may be B A A B as well.
        threshold, alpha, tick: as of ``judge``.

    Raises:
        ValueError: series of different lengths, an unknown order, or as ``judge``.
    """
    check_limits(threshold, alpha)
    a, b = checked_times(base, "base"), checked_times(new, "new")
    if a.size != b.size:
        raise ValueError(f"pairs need as many base samples as new ones: {a.size} and {b.size}")
    contrasts = log_contrasts(a, b, order)
    if contrasts.size < MIN_CONTRASTS:
        ratio = float(np.median(b) / np.median(a))
        test = wilcoxon(contrasts) if contrasts.size else RankTest(0.0, 1.0, 0.0, 1.0, True)
        return decide(Ratio(ratio, 0.0, math.inf, 0.0), test, threshold, alpha, a.size, (0.0, 0.0))
    shift = pseudo_median(contrasts, 1 - alpha)
    ticks = _ticks(a, b, tick)
    hidden = math.fsum(hidden_by(x, t) for x, t in zip((a, b), ticks, strict=True))
    confidence = 0.0 if math.isnan(hidden) else shift.confidence
    low, high = (0.0, math.inf) if math.isnan(hidden) else (math.exp(shift.low - hidden), math.exp(shift.high + hidden))
    ratio_interval = Ratio(math.exp(shift.value), low, high, confidence)
    return decide(ratio_interval, wilcoxon(contrasts), threshold, alpha, a.size, ticks)


def _ticks(base: Array, new: Array, tick: ClockTick) -> tuple[float | None, float | None]:
    """The resolution of each timer. Where a series does not show it, both together may."""
    if isinstance(tick, tuple):
        return tick
    if tick is None and (math.isnan(timer_tick(base)) or math.isnan(timer_tick(new))):
        both = timer_tick(np.concatenate((base, new)))
        return (both, both) if both > 0 else (None, None)
    return tick, tick


def hidden_by(times: Array, tick: float | None) -> float:
    """The relative error that a tick may hide: half of one where it is wider than the noise, else 0; NaN if it is not known."""
    ticked = on_ticks(times, tick)
    return ticked.tick / 2 / float(np.median(times)) if ticked.coarse else 0.0


def log_contrasts(base: Array, new: Array, order: str) -> Array:
    """Log of new / base from each round of four, shape (n // 2,), free of a linear drift.

    Weights in time: A B B A -1/2 1/2 1/2 -1/2; A B A B -1/4 3/4 -3/4 1/4 (a quarter more variance). Their sums and their
    sums over time are 0, and reversing the round exchanges base and new, so two equal series give contrasts that are
    symmetric around 0, as Wilcoxon's test needs, even when the times are skewed.

    Raises:
        ValueError: an unknown order.
    """
    rounds = base.size // 2 * 2
    a, b = np.log(base[:rounds]).reshape(-1, 2), np.log(new[:rounds]).reshape(-1, 2)
    if order == "ABBA":
        return np.asarray((b - a).mean(axis=1))
    if order == "ABAB":
        return np.asarray((3 * b[:, 0] + b[:, 1] - a[:, 0] - 3 * a[:, 1]) / 4)
    raise ValueError(f"order is ABBA or ABAB, not {order!r}")


def check_limits(threshold: float, alpha: float) -> None:
    """Raises ValueError for a threshold or an alpha out of range."""
    if not 0 <= threshold < math.inf or not 0 < alpha < 1:
        raise ValueError("a threshold is 0 or more, alpha lies between 0 and 1")


def checked_times(values: npt.ArrayLike, name: str) -> Array:
    x = finite_samples(values)
    if x.min() <= 0:
        raise ValueError(f"{name} holds a time that is not above 0")
    return x


def decide(
    ratio: Ratio,
    test: RankTest,
    threshold: float,
    alpha: float,
    samples: int,
    ticks: tuple[float | None, float | None],
) -> Verdict:
    def verdict(kind: Kind, reason: str, low: float = ratio.low, high: float = ratio.high) -> Verdict:
        return Verdict(kind, ratio.value, low, high, test.p_value, test.effect, reason)

    if ratio.confidence < 1 - alpha - 1e-12:
        why = f"{samples} samples (or what they are worth) are too few for an interval"
        if samples >= MIN_CONTRASTS and None in ticks:
            why += ", or all equal: then give the tick of their clock"
        return verdict(Kind.UNSURE, why, 0.0, math.inf)
    change = f"{100 * (ratio.value - 1):+.2f} % ({100 * (ratio.low - 1):+.2f} to {100 * (ratio.high - 1):+.2f} %)"
    margin = f"the margin of {100 * threshold:g} %"
    outside = ratio.low > 1 or ratio.high < 1
    if 1 / (1 + threshold) <= ratio.low and ratio.high <= 1 + threshold:
        return verdict(Kind.SAME, f"{change} differs, below {margin}" if outside else f"{change} lies within {margin}")
    if not outside:
        return verdict(Kind.UNSURE, f"{change} holds 0 and reaches beyond {margin}: more samples")
    if test.p_value >= alpha or (test.effect > 0) != (ratio.low > 1):
        return verdict(Kind.UNSURE, f"the medians differ, {change}, but the ranks do not: p {test.p_value:.2g}")
    if ratio.low > 1 + threshold or ratio.high < 1 / (1 + threshold):
        kind = Kind.SLOWER if ratio.low > 1 else Kind.FASTER
        return verdict(kind, f"{change}, p {test.p_value:.2g}, effect {test.effect:+.2f}")
    return verdict(Kind.SMALL, f"{change} differs, but not for certain by more than {margin}: more samples")
