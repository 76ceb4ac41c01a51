"""The median of a series of times and its interval; quantiles, spread, and the ratio of two medians.

Intervals come from order statistics: they need no assumption on the distribution, which for GPU times has two modes and
a long tail more often than it is normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.correlation import Array, dependence, finite_samples
from cuptiprof.stats.ticks import on_ticks, spread_ties

CONFIDENCE = 0.95
MIN_EFFECTIVE = 20.0
"""Independent samples that correlated ones must be worth for an interval to be claimed of them."""


@dataclass(frozen=True)
class MedianInterval:
    """A median and the interval that holds the true one at `confidence`; all in the samples' unit.

    Attributes:
        confidence: what was asked for, or what so few samples can give: 1 - 2^(1-n) of n independent ones. 0: no interval is
            claimed; correlated samples are worth fewer than 20, or the timer's tick is not known and hides the noise.
        samples: how many there were.
        effective: how many independent ones they are worth.
        tick: resolution of the timer that was allowed for; 0: none; NaN: there is one, and it cannot be told.
        coarse: the noise is below the tick: the interval reaches to the borders of ticks, and more samples do not narrow it.
        settled: the samples' correlation, if any is seen, is known well enough.
    """

    median: float
    low: float
    high: float
    confidence: float
    samples: int
    effective: float
    tick: float
    coarse: bool = False
    settled: bool = True

    @property
    def half_width(self) -> float:
        """Half of the interval over the median, without a unit; infinite when the median is not positive."""
        return (self.high - self.low) / 2 / self.median if self.median > 0 else math.inf


@lru_cache(maxsize=4096)
def sign_rank(n: int, confidence: float) -> tuple[float, float]:
    """Fractional rank (from 1) of the lower end of the median's interval, and the confidence that it gives.

    Between the order statistics k and k + 1 whose intervals have the confidence just above and just below the wanted
    one, at the weight of Hettmansperger, Sheather, Confidence Intervals Based on Interpolated Order Statistics,
    Statistics & Probability Letters 4 (1986). Where even the whole range gives less (n < 6 for 0.95): rank 1, and less.
    """
    # P(B <= j) of B ~ Binomial(n, 1/2), from the middle down: far below it the terms are 0.
    middle = n // 2
    steps = np.arange(middle, max(0, middle - int(6 * math.sqrt(n)) - 8), -1, dtype=np.float64)
    start = math.exp(math.lgamma(n + 1) - math.lgamma(middle + 1) - math.lgamma(n - middle + 1) - n * math.log(2))
    pmf = start * np.concatenate(([1.0], np.cumprod(steps / (n - steps + 1))))
    cdf = np.cumsum(pmf[::-1])  # cdf[i]: up to j = middle - len(steps) + i
    first = middle - steps.size
    covers = 1.0 - 2.0 * cdf  # of [X(j+1), X(n-j)]
    enough = np.flatnonzero(covers >= confidence)
    if not enough.size:
        return 1.0, max(0.0, 1.0 - 2.0 ** (1 - n))
    # Hettmansperger and Sheather: lambda = (n - k) I / (k + (n - 2 k) I), with I = (gamma_k - gamma) / (gamma_k - gamma_k+1).
    i = int(enough[-1])
    k = first + i + 1
    share = (covers[i] - confidence) / (covers[i] - covers[i + 1])
    weight = (n - k) * share / (k + (n - 2 * k) * share)
    return float(k + weight), confidence


def _at(ordered: Array, rank: float) -> float:
    """Value at a fractional rank from 1, between its neighbours."""
    rank = min(max(rank, 1.0), float(ordered.size))
    below = int(rank)
    low = float(ordered[below - 1])
    return low if rank == below else low + (rank - below) * (float(ordered[below]) - low)


def median_interval(
    samples: npt.ArrayLike, confidence: float = CONFIDENCE, *, tick: float | None = None, independent: bool = False
) -> MedianInterval:
    """The median and its interval from interpolated order statistics, allowing for ticks and for correlation.

    Ranks are those of ``sign_rank``; correlated samples push both ends out by sqrt(tau), tau being their correlation time
    (``dependence``). When one tick holds more than a third of the samples, the interval reaches to the borders of its ticks.
    Below 6 samples the interval is the whole range and `confidence` what it is worth: 0.9375 for 5, 0.875, 0.75, 0.5, and 0
    for one sample.

    Args:
        samples: shape (n,), any unit, in the order of measuring.
        tick: resolution of the timer, in the samples' unit; None: found by ``timer_tick``; 0: none.
        independent: the samples are known to be independent: no allowance for correlation.

    Raises:
        ValueError: no samples, samples that are not finite, a confidence outside (0, 1), or a negative tick.
    """
    if not 0 < confidence < 1:
        raise ValueError("a confidence lies between 0 and 1")
    ticked = on_ticks(finite_samples(samples), tick)
    x, step = ticked.samples, ticked.tick
    raw = np.sort(x)
    ordered = spread_ties(raw, step) if ticked.certain else raw
    middle = (x.size + 1) / 2
    median = _at(ordered, middle)
    found = None if independent else dependence(x)
    tau = found.time if found is not None else 1.0
    rank, reached = sign_rank(x.size, confidence)
    rank = middle - (middle - rank) * math.sqrt(tau)
    if rank < 1:
        # The whole range is less than was asked for: what it is worth to n / tau samples.
        reached = max(0.0, min(reached, 1.0 - 2.0 ** (1 - x.size / tau)))
    low, high = _at(ordered, rank), _at(ordered, x.size + 1 - rank)
    if ticked.coarse and step > 0:
        low = raw[0] + step * (math.floor((low - raw[0]) / step + 0.5) - 0.5)
        high = raw[0] + step * (math.ceil((high - raw[0]) / step - 0.5) + 0.5)
    if math.isnan(step) or (found is not None and found.seen and tau > 2 and x.size / tau < MIN_EFFECTIVE):
        reached = 0.0
    settled = found is None or found.settled
    return MedianInterval(
        median, float(low), float(high), reached, x.size, x.size / tau, step, ticked.coarse and step > 0, settled
    )


def quantiles(samples: npt.ArrayLike, probabilities: Sequence[float]) -> Array:
    """Quantiles, shape (len(probabilities),), in the samples' unit, median-unbiased.

    Definition 8 of Hyndman, Fan, Sample Quantiles in Statistical Packages, The American Statistician 50 (1996).

    Raises:
        ValueError: no samples, samples that are not finite, or a probability outside [0, 1].
    """
    return np.asarray(np.quantile(finite_samples(samples), probabilities, method="median_unbiased"))


def mad(samples: npt.ArrayLike, *, scaled: bool = True) -> float:
    """Median absolute deviation from the median, in the samples' unit.

    `scaled`: times 1.4826, which makes it the standard deviation of normal samples: Hampel, The Influence Curve and Its
    Role in Robust Estimation, JASA 69 (1974).

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(samples)
    return float(np.median(np.abs(x - np.median(x)))) * (1 / NormalDist().inv_cdf(0.75) if scaled else 1.0)


@dataclass(frozen=True)
class Ratio:
    """A ratio without a unit, and the interval that holds the true one at `confidence`."""

    value: float
    low: float
    high: float
    confidence: float


def ratio_of_medians(
    over: npt.ArrayLike,
    under: npt.ArrayLike,
    confidence: float = CONFIDENCE,
    *,
    ticks: tuple[float | None, float | None] = (None, None),
) -> Ratio:
    """median(over) / median(under) and its interval, from the intervals of both medians.

    MOVER on logarithms: Zou, Donner, Construction of Confidence Limits about Effect Measures, Statistics in Medicine 27
    (2008). With log medians a, b and their limits: a - b - sqrt((a - a_low)^2 + (b_high - b)^2), and so the upper. Where a timer's
    tick hides the noise its error is no matter of chance, and the two gaps add.

    Args:
        over, under: shapes (m,) and (n,), the same unit, in the order of measuring.
        ticks: resolutions of their timers, as of ``median_interval``.

    Raises:
        ValueError: no samples, samples that are not finite, a median that is not positive, or a negative tick.
    """
    a, b = median_interval(over, confidence, tick=ticks[0]), median_interval(under, confidence, tick=ticks[1])
    if a.median <= 0 or b.median <= 0:
        raise ValueError("the ratio of medians needs positive ones")
    join = float.__add__ if a.coarse or b.coarse else math.hypot
    to_low = join(_log_gap(a.low, a.median), _log_gap(b.median, b.high))
    to_high = join(_log_gap(a.median, a.high), _log_gap(b.low, b.median))
    value = a.median / b.median
    high = value * math.exp(to_high) if to_high < 700 else math.inf
    return Ratio(value, value * math.exp(-to_low), high, min(a.confidence, b.confidence))


def _log_gap(low: float, high: float) -> float:
    return math.log(high / low) if low > 0 else math.inf
