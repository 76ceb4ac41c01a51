"""How values of a group are spread: mean, median, 95th percentile, extremes. Without a loop over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class Spread:
    """Statistics of groups 0..n-1, arrays of n; those of a group without values are 0.

    ``median`` is the mean of the two middle values where their number is even; ``p95`` is the smallest value that at least
    95 % of the values do not exceed.
    """

    count: Int64
    total: Int64
    mean: npt.NDArray[np.float64]
    minimum: Int64
    median: npt.NDArray[np.float64]
    p95: Int64
    maximum: Int64


def spread_by_group(group: Array, value: Array, groups: int) -> Spread:
    """Of int64 values by group (integers 0..groups-1)."""
    order = np.lexsort((value, group))
    values = np.asarray(value, np.int64)[order]
    count = np.bincount(np.asarray(group, np.int64), minlength=groups)
    first = np.cumsum(count) - count
    has = np.flatnonzero(count)

    def at(position: Array) -> Int64:
        out = np.zeros(groups, np.int64)
        out[has] = values[(first + position)[has]]
        return out

    total = np.zeros(groups, np.int64)
    if len(values):
        total[has] = np.add.reduceat(values, first[has])
    low, high = at((count - 1) // 2), at(count // 2)
    return Spread(
        count=count,
        total=total,
        mean=total / np.maximum(count, 1),
        minimum=at(np.zeros(groups, np.int64)),
        median=low + (high - low) / 2,
        p95=at(np.maximum(-(-count * 95 // 100) - 1, 0)),
        maximum=at(np.maximum(count - 1, 0)),
    )


def or_none(values: Array, count: Array) -> list[Any]:
    """As a list, None where there were no values."""
    return [value if n else None for value, n in zip(values.tolist(), count.tolist(), strict=True)]
