"""The statistics of the overhead table: medians, tails and bootstrap intervals. Times in ns, ratios without a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A median with its bootstrap interval, the 99th percentile, and how many samples there were."""

    median: float
    low: float
    high: float
    p99: float
    samples: int

    def as_dict(self, digits: int = 4) -> dict[str, Any]:
        return {k: round(v, digits) if isinstance(v, float) else v for k, v in asdict(self).items()}


def bootstrap_medians(
    samples: npt.NDArray[np.float64], seed: int, resamples: int = RESAMPLES
) -> npt.NDArray[np.float64]:
    """Medians of `resamples` samples drawn with replacement. Shape (n,) -> (resamples,)."""
    rng = np.random.default_rng(seed)
    out = np.empty(resamples)
    # In blocks, so that 10^4 samples do not become a matrix of 160 MB.
    block = max(1, 2_000_000 // len(samples))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        out[start : start + rows] = np.median(samples[rng.integers(0, len(samples), (rows, len(samples)))], axis=1)
    return out


def estimate(values: Sequence[float], seed: int = 1) -> Estimate:
    """Median, 95 % percentile-bootstrap interval of the median, and 99th percentile.

    Raises:
        ValueError: no values.
    """
    samples = np.asarray(values, np.float64)
    if samples.size == 0:
        raise ValueError("no samples")
    medians = bootstrap_medians(samples, seed)
    tail = (1 - CONFIDENCE) / 2 * 100
    low, high = np.percentile(medians, [tail, 100 - tail])
    return Estimate(float(np.median(samples)), float(low), float(high), float(np.percentile(samples, 99)), samples.size)


def ratio_of_medians(over: Sequence[float], under: Sequence[float], seed: int = 1) -> Estimate:
    """median(over) / median(under) with the bootstrap interval of two independent samples; ``p99`` is p99 / p99.

    Raises:
        ValueError: no values, or a denominator whose median is 0.
    """
    a, b = np.asarray(over, np.float64), np.asarray(under, np.float64)
    if a.size == 0 or b.size == 0:
        raise ValueError("no samples")
    if np.median(b) <= 0:
        raise ValueError("the denominator's median is not positive")
    ratios = bootstrap_medians(a, seed) / np.maximum(bootstrap_medians(b, seed + 1), np.finfo(float).tiny)
    tail = (1 - CONFIDENCE) / 2 * 100
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return Estimate(
        float(np.median(a) / np.median(b)),
        float(low),
        float(high),
        float(np.percentile(a, 99) / max(float(np.percentile(b, 99)), np.finfo(float).tiny)),
        min(a.size, b.size),
    )


def ratio_by_round(over: Sequence[Sequence[float]], under: Sequence[Sequence[float]], seed: int = 1) -> Estimate:
    """Each round's median over that round's other median, and then as :func:`estimate`: drift between rounds drops out.

    Raises:
        ValueError: no rounds, an empty one, or not as many on both sides.
    """
    if len(over) != len(under):
        raise ValueError("not as many rounds on both sides")
    ratios = []
    for a, b in zip(over, under, strict=True):
        if len(a) == 0 or len(b) == 0:
            raise ValueError("an empty round")
        ratios.append(float(np.median(a) / np.median(b)))
    return estimate(ratios, seed)


def differs_from_one(ratio: Estimate) -> bool:
    """Whether the interval excludes 1: what the noise does not explain."""
    return ratio.low > 1 or ratio.high < 1
