"""How many kernels took how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.result import Result

_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class DurationHistogram:
    """One entry a bin, from 1, 2 or 5 times a power of ten ns to the next; without the empty ones at both ends.

    Attributes:
        low, high: ends of the bin, ns; `high` is outside, and a duration of 0 is in the first.
        launches: kernels in it. time: their durations added up, ns.
    """

    low: Int64
    high: Int64
    launches: Int64
    time: Int64


def duration_histogram(result: Result) -> DurationHistogram:
    """Of all kernels."""
    lasted = np.maximum(result.kernels["end"] - result.kernels["start"], 0)
    if not len(lasted):
        return DurationHistogram(*(np.zeros(0, np.int64) for _ in range(4)))
    edges = np.array([step * 10**power for power in range(18) for step in _STEPS], np.int64)
    bins = np.clip(np.searchsorted(edges, lasted, side="right") - 1, 0, len(edges) - 2)
    first, last = int(bins.min()), int(bins.max()) + 1
    time = np.zeros(last - first, np.int64)
    np.add.at(time, bins - first, lasted)
    return DurationHistogram(
        edges[first:last], edges[first + 1 : last + 1], np.bincount(bins - first, minlength=last - first), time
    )
