"""How much a series of times depends on itself: autocorrelation, the effective number of samples, and drift.

Times of one kernel are not independent: clocks wander, caches stay warm. n dependent samples tell as much about their
centre as n / tau independent ones, tau being the integrated autocorrelation time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MIN_SAMPLES = 8  # below, no correlation can be told from chance
T_SQUARED = {10: (2.262 / 1.960) ** 2, 20: (2.093 / 1.960) ** 2}
"""Numbers of blocks whose means show what is slower than the lags that can be told from chance, and (t / z)^2 at 95 % of their degrees
of freedom."""
MIN_BLOCK = 4
"""Samples of a block, below which its mean shows no more than the lags do."""
SEEN_SLOW, SEEN_FAST = 1.25, 1.6
"""Block variance and correlation time from which correlation counts as seen. Low: one series in four of independent samples is
called correlated, which costs samples; one that is correlated and not seen costs the interval its truth."""
UNSURE_FACTOR = 2.0
"""The variance of ten means may show half of what it is."""
SETTLED_TIMES = 200
"""Correlation times that a correlated series must hold before its correlation time is known well enough to stop on: with fewer
the rule stops where it happens to be low (docs/benchmark-statistics.md)."""


def finite_samples(values: npt.ArrayLike) -> Array:
    """The values as float64, shape (n,).

    Raises:
        ValueError: no values, not one-dimensional, or not all finite.
    """
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError("no samples" if x.size == 0 else "samples have one dimension")
    if not np.isfinite(x).all():
        raise ValueError("samples must be finite numbers")
    return x


def midranks(values: Array) -> Array:
    """Ranks from 1, shape (n,) -> (n,), float64; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse])


def autocorrelation(values: npt.ArrayLike, lags: int | None = None) -> Array:
    """Autocorrelation at lags 0 to `lags` (default: all), shape (lags + 1,); all 0 after lag 0 for a constant series.

    Source: Box, Jenkins, Time Series Analysis, 2.1.5 (the estimate divided by n), by FFT (Wiener-Khinchin).

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(values)
    n = x.size
    lags = n - 1 if lags is None else min(lags, n - 1)
    x = x - x.mean()
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(x, size)) ** 2
    covariance = np.fft.irfft(power, size)[: lags + 1]
    if covariance[0] <= 1e-12 * n:  # rounding noise of a constant series is no signal
        return np.asarray(np.eye(1, lags + 1)[0])
    return np.asarray(covariance / covariance[0])


def correlation_time(scores: npt.ArrayLike) -> float:
    """Integrated autocorrelation time tau = 1 + 2 sum(rho_k), in samples; 1 (independent) to n / 2.

    The sum ends before the first pair rho_2k + rho_2k+1 that is not positive: the initial positive sequence of Geyer,
    Practical Markov Chain Monte Carlo, Statistical Science 7 (1992), 3.3. Below 8 samples nothing can be told: 1.

    Args:
        scores: bounded scores in the order of measuring: signs around the median, or ranks. Raw times would let one
            outlier hide every correlation.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(scores)
    n = x.size
    if n < MIN_SAMPLES:
        return 1.0
    rho = autocorrelation(x, n // 2)
    pairs = rho[: rho.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    tau = 2.0 * float(pairs[: int(ends[0]) if ends.size else pairs.size].sum()) - 1.0
    return min(max(tau, 1.0), n / 2.0)


def block_variance(scores: Array, blocks: int) -> float:
    """Variance of the means of so many blocks over that of independent scores: the correlation time that slow changes make.

    Batch means: Conway, Some Tactical Problems in Digital Simulation, Management Science 10 (1963). 1 where blocks would hold fewer
    than :data:`MIN_BLOCK` scores, or all are equal.
    """
    size = scores.size // blocks
    if size < MIN_BLOCK or (variance := float(scores.var())) <= 0:
        return 1.0
    means = scores[: size * blocks].reshape(blocks, size).mean(axis=1)
    return size * float(means.var(ddof=1)) / variance


@dataclass(frozen=True)
class Dependence:
    """How much samples depend on each other.

    Attributes:
        time: the correlation time of their median, in samples, 1 or more.
        seen: it is more than chance.
        settled: nothing is seen, or there are enough samples to know how much it is.
    """

    time: float
    seen: bool
    settled: bool


def dependence(samples: npt.ArrayLike) -> Dependence:
    """The dependence of samples, shape (n,), in the order of measuring, as the interval of their median needs it.

    The median's error is that of the mean of the signs (Bahadur's representation, Annals of Mathematical Statistics 37
    (1966)), so it is their autocorrelation that counts. A slow change below faster noise is lost among the lags, so where
    means of blocks vary more than chance lets them, they give the time too, times (t / z)^2 of their few degrees of freedom:
    means of ranks, which see changes that signs do not.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(samples)
    signs, ranks = np.sign(x - np.median(x)), midranks(x)
    fast, slow = correlation_time(signs), {n: block_variance(ranks, n) for n in T_SQUARED}
    if fast <= SEEN_FAST and max(slow.values()) <= SEEN_SLOW:
        return Dependence(fast, False, True)
    by_blocks = [t_squared * slow[n] for n, t_squared in T_SQUARED.items() if x.size >= n * MIN_BLOCK]
    time = min(max(fast, *by_blocks, 1.0), x.size / 2.0)
    longest = max(time, UNSURE_FACTOR * max(slow.values()), correlation_time(ranks))
    return Dependence(time, True, x.size >= SETTLED_TIMES * longest)


def effective_samples(samples: npt.ArrayLike) -> float:
    """Number of independent samples that would give the median as well as these: n / tau of their signs around it.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(samples)
    return x.size / correlation_time(np.sign(x - np.median(x)))


@dataclass(frozen=True)
class Trend:
    """How samples move with time: `rho`, Spearman's correlation with their order, -1 to 1, and its two-sided p-value."""

    rho: float
    p_value: float


def trend(samples: npt.ArrayLike) -> Trend:
    """Whether samples rise or fall over the run: Spearman's rho with the order, z = rho sqrt(n - 1).

    Source: Lehmann, Nonparametrics (1975), 7.3; ties by midranks. The p-value is of independent samples: correlated
    ones look like a trend more often. Below 8 samples, or all equal: rho 0, p 1.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(samples)
    ranks = midranks(x) - (x.size + 1) / 2
    order = np.arange(x.size) - (x.size - 1) / 2
    scale = math.sqrt(float(ranks @ ranks) * float(order @ order))
    if x.size < MIN_SAMPLES or scale == 0:
        return Trend(0.0, 1.0)
    rho = float(ranks @ order) / scale
    return Trend(rho, two_sided_p(rho * math.sqrt(x.size - 1)))


def two_sided_p(z: float) -> float:
    """P(abs(Z) >= abs(z)) of a standard normal Z."""
    return math.erfc(abs(z) / math.sqrt(2))
