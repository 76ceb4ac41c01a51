"""Statistics of the values of a step function at its changes, as pandas' ``describe`` has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class PointSummary:
    """``std`` is that of a sample, None of one value; quartiles are interpolated between the two values next to them."""

    count: int
    mean: float
    std: float | None
    minimum: float
    p25: float
    median: float
    p75: float
    maximum: float


def summary_of(values: Array) -> PointSummary:
    """Of at least one value."""
    minimum, p25, median, p75, maximum = (float(v) for v in np.percentile(values, (0, 25, 50, 75, 100)))
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return PointSummary(len(values), float(np.mean(values)), std, minimum, p25, median, p75, maximum)
