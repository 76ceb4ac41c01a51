"""Steps that stand out among the others."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.thresholds import OUTLIER_RANGES, OUTLIER_RATIO, OUTLIER_STEPS


def step_outliers(took: Int64) -> tuple[Int64, float]:
    """Which of these durations stand out, and their median: beyond Tukey's outer fence (the third quartile and three times the
    range between the quartiles), at least 1.5 times the median, of five steps or more."""
    if not len(took):
        return np.zeros(0, np.int64), 0.0
    low, median, high = np.quantile(took, (0.25, 0.5, 0.75))
    out = (took > high + OUTLIER_RANGES.value * (high - low)) & (took >= OUTLIER_RATIO.value * median)
    found: Int64 = np.flatnonzero(out & (len(took) >= OUTLIER_STEPS.value))
    return found, float(median)
