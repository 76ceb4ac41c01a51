"""Interval arithmetic on int64 arrays of shape (n, 2): start, end in ns."""

from __future__ import annotations

import numpy as np

from cuptiprof.tables import Array


def union(intervals: Array) -> Array:
    """The same points as non-overlapping intervals in rising order."""
    if not len(intervals):
        return intervals
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    new = np.r_[True, ordered[1:, 0] > reach[:-1]]
    starts = np.flatnonzero(new)
    return np.stack([ordered[starts, 0], reach[np.r_[starts[1:] - 1, len(ordered) - 1]]], axis=1)


def length(intervals: Array) -> int:
    """Time covered by non-overlapping intervals."""
    return int((intervals[:, 1] - intervals[:, 0]).sum()) if len(intervals) else 0
