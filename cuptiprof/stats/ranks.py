"""Rank tests and effect sizes, for two samples and for pairs, and the pseudo-median of pairs; all allow for correlation.

A normal approximation whose variance is that of independent samples times the correlation time of the scores that the
test adds up: Lahiri, Resampling Methods for Dependent Data (2003), 2.2, on the variance of sums of dependent terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.correlation import Array, correlation_time, finite_samples, midranks, two_sided_p
from cuptiprof.stats.statistics import CONFIDENCE

MAX_EXACT_SAMPLES = 40  # in all, up to which every arrangement is counted


@dataclass(frozen=True)
class RankTest:
    """A rank test.

    Attributes:
        statistic: U, the pairs in which the first sample is larger (ties count half); or W, the rank sum of positives.
        p_value: two-sided.
        effect: -1 to 1, 0 for no difference: Cliff's delta, or the matched-pairs rank-biserial correlation.
        tau: the correlation time that was allowed for.
        exact: every arrangement was counted; else the normal approximation.
    """

    statistic: float
    p_value: float
    effect: float
    tau: float
    exact: bool


@dataclass(frozen=True)
class Shift:
    """A difference in the samples' unit, and the interval that holds the true one at `confidence`."""

    value: float
    low: float
    high: float
    confidence: float


def _exact_p(ranks: Array, chosen: int | None, total: float) -> float:
    """Two-sided p of a sum of ranks over all subsets (`chosen`: of that size), by the shift algorithm.

    Source: Streitberg, Roehmel, Exact Distributions for Permutation and Rank Tests, Statistical Software Newsletter 12
    (1986). Doubled midranks are whole, so ties are exact too.
    """
    doubled = np.rint(2 * ranks).astype(np.int64)
    size = len(doubled) if chosen is not None else 0
    ways = np.zeros((size + 1, int(doubled.sum()) + 1))
    ways[0, 0] = 1
    for rank in doubled:
        more = ways.copy()
        if chosen is None:
            more[:, rank:] += ways[:, : ways.shape[1] - rank]
        else:
            more[1:, rank:] += ways[:-1, : ways.shape[1] - rank]
        ways = more
    counts = ways[chosen or 0]
    at = round(2 * total)
    tail = min(counts[: at + 1].sum(), counts[at:].sum()) / counts.sum()
    return float(min(1.0, 2 * tail))


def mann_whitney(first: npt.ArrayLike, second: npt.ArrayLike) -> RankTest:
    """Mann-Whitney U test of two samples, shapes (m,) and (n,), in the order of measuring, with Cliff's delta.

    Exact up to 40 samples in all without correlation; else the normal approximation with the tie and the continuity
    correction: Lehmann, Nonparametrics (1975), 1.4. Correlation multiplies its variance by (n tau_1 + m tau_2) / (m +
    n), with the correlation times of each sample's ranks. Cliff, Dominance Statistics, Psychological Bulletin 114
    (1993): delta = 2 U / (m n) - 1.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x, y = finite_samples(first), finite_samples(second)
    m, n = x.size, y.size
    ranks = midranks(np.concatenate((x, y)))
    total = float(ranks[:m].sum())
    u = total - m * (m + 1) / 2
    tau = (n * correlation_time(midranks(x)) + m * correlation_time(midranks(y))) / (m + n)
    effect = 2 * u / (m * n) - 1
    if m + n <= MAX_EXACT_SAMPLES and tau == 1:
        return RankTest(u, _exact_p(ranks, m, total), effect, tau, True)
    # Var U = m n / 12 (N + 1 - sum(t^3 - t) / (N (N - 1))), N = m + n, over the sizes t of the ties.
    _, ties = np.unique(ranks, return_counts=True)
    size = m + n
    variance = m * n / 12 * (size + 1 - float((ties.astype(np.float64) ** 3 - ties).sum()) / (size * (size - 1)))
    if variance <= 0:  # all equal
        return RankTest(u, 1.0, effect, tau, False)
    z = max(abs(u - m * n / 2) - 0.5, 0.0) / math.sqrt(variance * tau)
    return RankTest(u, two_sided_p(z), effect, tau, False)


def wilcoxon(differences: npt.ArrayLike) -> RankTest:
    """Wilcoxon's signed-rank test that differences, shape (n,) in the order of measuring, lie around 0.

    Zeros are ranked and then left out, so many of them speak for no difference: Pratt, JASA 54 (1959). Exact up to 40
    without correlation; else the normal approximation, its variance times the correlation time of the signed ranks.
    Effect: (W+ - W-) / (W+ + W-): Kerby, The Simple Difference Formula, Comprehensive Psychology 3 (2014).

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    d = finite_samples(differences)
    signed = np.sign(d) * midranks(np.abs(d))
    tau = correlation_time(signed)
    ranks = np.abs(signed[signed != 0])
    positive = float(signed[signed > 0].sum())
    if not ranks.size:
        return RankTest(0.0, 1.0, 0.0, tau, True)
    effect = 2 * positive / float(ranks.sum()) - 1
    if d.size <= MAX_EXACT_SAMPLES and tau == 1:
        return RankTest(positive, _exact_p(ranks, None, positive), effect, tau, True)
    deviation = math.sqrt(float(ranks @ ranks) / 4 * tau)  # Var W+ = sum(r^2) / 4, with ties and without zeros
    z = max(abs(positive - float(ranks.sum()) / 2) - 0.5, 0.0) / deviation
    return RankTest(positive, two_sided_p(z), effect, tau, False)


def _smallest(count: Callable[[float], float], rank: float, low: float, high: float) -> float:
    """Smallest value between `low` and `high` whose `count` of values up to it reaches `rank`, by halving."""
    if count(low) >= rank:
        return low
    scale = max(abs(low), abs(high))
    while high - low > 1e-15 * scale and low < (middle := (low + high) / 2) < high:
        if count(middle) >= rank:
            high = middle
        else:
            low = middle
    return high


def _walsh_shift(x: Array, cut: int, confidence: float) -> Shift:
    """Median of all sums x_i + x_j, i <= j, and those in place `cut` from both ends.

    In ascending order. The sums are counted, never made, so memory stays at n.
    """
    pairs = x.size * (x.size + 1) // 2

    def count(value: float) -> float:
        # Counted over i and j in any order, each sum of two different places occurs twice.
        return (int(np.searchsorted(x, value - x, "right").sum()) + int((x + x <= value).sum())) / 2

    def at(rank: int) -> float:
        return _smallest(count, rank, float(2 * x[0]), float(2 * x[-1]))

    middle = (at((pairs + 1) // 2) + at(pairs // 2 + 1)) / 2
    if cut < 1:  # too few: the whole range, which is less than was asked for
        confidence = 0.0
    return Shift(middle, at(max(cut, 1)), at(pairs + 1 - max(cut, 1)), confidence)


def pseudo_median(differences: npt.ArrayLike, confidence: float = CONFIDENCE) -> Shift:
    """The median of the means of all n (n + 1) / 2 pairs of differences (Walsh averages), and its interval.

    Hodges, Lehmann (1963); interval by inverting Wilcoxon's signed-rank test: Hollander, Wolfe, 3.3. Allows for
    correlation as ``wilcoxon`` does, around the estimate.

    Raises:
        ValueError: no samples, samples that are not finite, or a confidence outside (0, 1).
    """
    if not 0 < confidence < 1:
        raise ValueError("a confidence lies between 0 and 1")
    halves = finite_samples(differences) / 2  # so that a sum of two is a mean
    ordered, n = np.sort(halves), halves.size
    centred = 2 * halves - _walsh_shift(ordered, 1, confidence).value
    tau = correlation_time(np.sign(centred) * midranks(np.abs(centred)))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    # Among the n (n + 1) / 2 averages: n (n + 1) / 4 - z sqrt(Var W), Var W = n (n + 1) (2 n + 1) / 24.
    cut = math.floor(n * (n + 1) / 4 - z * math.sqrt(n * (n + 1) * (2 * n + 1) / 24 * tau))
    return _walsh_shift(ordered, cut, confidence)
