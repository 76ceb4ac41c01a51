"""Quantities that hold from one change to the next, brought to common times, and to as many of them as one can look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class StepCurves:
    """Attributes:
    time: int64, ns, ascending. values: of each curve, one value a time, which holds until the next.
    is_peak: each value is the largest of its stretch of time; else it is what the curve is.
    """

    time: Int64
    values: list[Array]
    is_peak: bool


def step_curves(curves: Sequence[tuple[Int64, Sequence[Array]]], most: int) -> StepCurves:
    """Curves at common times: at each change of any, or of more changes than `most` the largest value in each of `most` equal stretches.

    Args:
        curves: times (ascending, ns) and the columns that change then. Before its first change a column is 0.
    """
    time = np.concatenate([at for at, _ in curves])
    order = np.argsort(time, kind="stable")
    time = time[order]
    which = np.repeat(np.arange(len(curves)), [len(at) for at, _ in curves])[order]
    values = []
    for i, (_, columns) in enumerate(curves):
        latest = np.cumsum(which == i)
        values += [np.r_[np.zeros(1, column.dtype), column][latest] for column in columns]
    if len(time) <= most:
        return StepCurves(time, values, False)
    first, last = int(time[0]), int(time[-1])
    edges = np.linspace(first, last + 1, most + 1).astype(np.int64)
    low = np.searchsorted(time, edges[:-1], side="left")
    high = np.searchsorted(time, edges[1:], side="left")
    return StepCurves(edges[:-1], [_largest(column, low, high) for column in values], True)


def _largest(column: Array, low: Array, high: Array) -> Array:
    """Of the rows from `low` to before `high`, and of the row before, which holds at the beginning."""
    padded = np.r_[np.zeros(1, column.dtype), column, column[-1:]]
    inside = np.maximum.reduceat(padded, low + 1)
    carried = padded[low]
    out: Array = np.where(high > low, np.maximum(inside, carried), carried)
    return out
