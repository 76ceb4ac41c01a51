"""Binary search in many parts of one array at once."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.tables import Array


def bisect(values: Array, first: Array, after: Array, wanted: Array, side: str = "left") -> Int64:
    """Of each wanted value its place in ``values[first:after]``, which ascend, as a place in ``values``: ``np.searchsorted`` for parts.

    Args:
        first, after: where the part of each begins and ends; equal: an empty one.
        side: "left": before those that are equal; "right": behind them.
    """
    low, high = np.array(first, np.int64), np.array(after, np.int64)
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) // 2
        there = values[middle]
        up = there < wanted[open_] if side == "left" else there <= wanted[open_]
        low[open_] = np.where(up, middle + 1, low[open_])
        high[open_] = np.where(up, high[open_], middle)
        open_ = open_[low[open_] < high[open_]]
    return low


class Sections:
    """Rows by group and a value, for searching in groups.

    Attributes:
        order: rows, by group and then value. values: of these.
    """

    def __init__(self, group: Array, value: Array, groups: int) -> None:
        by_value = np.argsort(value, kind="stable")
        self.order: Int64 = by_value[np.argsort(group[by_value], kind="stable")]
        self.values = value[self.order]
        self._edges = np.searchsorted(group[self.order], np.arange(groups + 1))

    def last(self, group: Array, value: Array, *, before: bool = False) -> Int64:
        """Of each group (-1: none) the last row whose value is not above (``before``: is below) the given one; -1: none."""
        inside = np.flatnonzero(group >= 0)
        out = np.full(len(group), -1, np.int64)
        first, after = self._edges[group[inside]], self._edges[group[inside] + 1]
        place = bisect(self.values, first, after, value[inside], "left" if before else "right")
        found = place > first
        out[inside[found]] = self.order[place[found] - 1]
        return out
