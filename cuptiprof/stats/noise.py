"""What the noise of a series looks like: modes, outliers, drift. For reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.correlation import Array, Trend, effective_samples, finite_samples, trend
from cuptiprof.stats.statistics import mad, quantiles
from cuptiprof.stats.ticks import spread_ties, timer_tick

FENCE_RANGES = 3.0
"""Interquartile ranges beyond the quartiles where "far out" begins: Tukey, Exploratory Data Analysis (1977), 2D."""
MIN_MODE_SHARE = 0.05
"""Assumption: share of the samples below which a peak is no mode."""
MAX_VALLEY_SHARE = 0.5
"""Assumption: two peaks are two modes if the density between them falls below this share of the lower one."""
DENSITY_POINTS = 256
DRIFT_ALPHA = 0.001
"""p-value below which a drift is reported: small, because correlated samples look like one more often."""


@dataclass(frozen=True)
class Mode:
    """A value around which samples gather, in their unit, and the share of them, 0 to 1, nearer to it than to others."""

    value: float
    share: float


def modes(samples: npt.ArrayLike) -> tuple[Mode, ...]:
    """The modes in ascending order, at least one.

    Peaks of a Gaussian kernel density of the samples that are not far out, with Silverman's bandwidth (Density
    Estimation, 1986, 3.4.2), at least one tick. Two peaks are two modes if the valley between them falls below half of
    the lower one and both hold 5 % of the samples.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    ordered = np.sort(finite_samples(samples))
    low, high = fences(ordered)
    ordered = ordered[(ordered >= low) & (ordered <= high)]
    tick = _seen_tick(ordered)
    ordered = spread_ties(ordered, tick)
    # Silverman (3.31): h = 0.9 A n^(-1/5), A the smaller of the standard deviation and the interquartile range / 1.34.
    quartile_range = float(np.subtract(*np.quantile(ordered, (0.75, 0.25))))
    spread = min(float(ordered.std()), quartile_range / 1.34)
    bandwidth = max(0.9 * spread * ordered.size**-0.2, tick)
    if bandwidth <= 0 or ordered[-1] == ordered[0]:
        return (Mode(float(np.median(ordered)), 1.0),)
    grid = np.linspace(ordered[0] - bandwidth, ordered[-1] + bandwidth, DENSITY_POINTS)
    # Samples are counted on the grid first: 10^6 of them cost no more than 256.
    edges = np.concatenate(([-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]))
    counts = np.diff(np.searchsorted(ordered, edges))
    density = np.exp(-0.5 * ((grid[:, None] - grid[None, :]) / bandwidth) ** 2) @ counts
    borders = [0, *(int(np.searchsorted(ordered, grid[place])) for place in _valleys(density)), ordered.size]
    parts = [ordered[begin:end] for begin, end in pairwise(borders)]
    parts = [part for part in parts if part.size >= MIN_MODE_SHARE * ordered.size]
    kept = sum(part.size for part in parts)
    return tuple(Mode(float(np.median(part)), part.size / kept) for part in parts)


def _valleys(density: Array) -> list[int]:
    """Places of the minima between peaks, each below half of the lower of its two peaks."""
    found: list[int] = []
    peak = valley = 0
    for i in range(1, len(density)):
        if density[i] > density[peak] and not (density[valley] < MAX_VALLEY_SHARE * density[peak]):
            peak = valley = i
        elif density[i] < density[valley]:
            valley = i
        elif density[valley] < MAX_VALLEY_SHARE * min(density[peak], density[i]):
            found.append(valley)
            peak = valley = i
    return found


def fences(samples: npt.ArrayLike) -> tuple[float, float]:
    """The values beyond which samples are far out: 3 interquartile ranges (or ticks, if more) off the quartiles.

    Source: Tukey, Exploratory Data Analysis (1977), 2D.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    q1, q3 = quantiles(samples, (0.25, 0.75))
    reach = FENCE_RANGES * max(float(q3 - q1), _seen_tick(samples))
    return float(q1) - reach, float(q3) + reach


def _seen_tick(samples: npt.ArrayLike) -> float:
    tick = timer_tick(samples)
    return tick if tick > 0 else 0.0


@dataclass(frozen=True)
class Noise:
    """What the noise of a series looks like.

    Attributes:
        spread: 1.4826 MAD over the median, without a unit: the relative standard deviation of normal noise.
        low_outliers, high_outliers: samples beyond the far-out fences.
        modes: values around which samples gather.
        effective: independent samples that these are worth.
        drift: how they move with time.
        tick: resolution of the timer, in the samples' unit, as of ``timer_tick``.
    """

    samples: int
    spread: float
    low_outliers: int
    high_outliers: int
    modes: tuple[Mode, ...]
    effective: float
    drift: Trend
    tick: float

    def sentences(self, write: Callable[[float], str] = "{:.6g}".format) -> tuple[str, ...]:
        """What a reader should know, one fact each; empty for quiet noise.

        Args:
            write: a sample with its unit.
        """
        out = []
        if len(self.modes) > 1:
            parts = ", ".join(f"{write(m.value)} ({100 * m.share:.0f} %)" for m in self.modes)
            out.append(f"{len(self.modes)} modes: {parts}; the median tells little of either")
        if far := self.low_outliers + self.high_outliers:
            out.append(f"{far} of {self.samples} samples far out: {self.high_outliers} slow, {self.low_outliers} fast")
        if self.drift.p_value < DRIFT_ALPHA:
            way = "rise" if self.drift.rho > 0 else "fall"
            out.append(
                f"the samples {way} over the run (Spearman {self.drift.rho:+.2f}): still warming up, or throttled"
            )
        if self.effective < self.samples / 2:
            out.append(f"correlated: {self.samples} samples are worth {self.effective:.0f} independent ones")
        return tuple(out)


def describe_noise(samples: npt.ArrayLike) -> Noise:
    """Describe the noise of samples, shape (n,), any unit, in the order of measuring.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    x = finite_samples(samples)
    median = float(np.median(x))
    low, high = fences(x)
    return Noise(
        samples=x.size,
        spread=mad(x) / median if median > 0 else math.nan,
        low_outliers=int((x < low).sum()),
        high_outliers=int((x > high).sum()),
        modes=modes(x),
        effective=effective_samples(x),
        drift=trend(x),
        tick=timer_tick(x),
    )
