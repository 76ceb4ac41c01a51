"""Grouped sums and interval arithmetic over columns, without a loop over rows. Times are int64 ns throughout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.data.tables import Array

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """Statistics of a value by key; arrays of one length, by ascending key. All int64."""

    key: Int64
    count: Int64
    total: Int64
    minimum: Int64
    maximum: Int64


_AT_ONCE = 1 << 18
"""Rows sorted at a time: what fits into a core's cache, and little memory beside columns of any length."""


def group_stats(key: Array, value: Array) -> Groups:
    """Count, sum, minimum and maximum of ``value`` for each distinct ``key`` (integers)."""
    parts = [
        _reduced(key[rows], np.ones(len(value[rows]), np.int64), *[np.asarray(value[rows], np.int64)] * 3)
        for first in range(0, len(key), _AT_ONCE)
        for rows in [slice(first, first + _AT_ONCE)]
    ]
    if not parts:
        empty = np.zeros(0, np.int64)
        return Groups(empty, empty, empty, empty, empty)
    if len(parts) == 1:
        return parts[0]
    key, count, total, minimum, maximum = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("key", "count", "total", "minimum", "maximum")
    )
    return _reduced(key, count, total, minimum, maximum)


def _reduced(key: Array, count: Int64, total: Int64, minimum: Int64, maximum: Int64) -> Groups:
    lowest = int(key.min())
    if int(key.max()) - lowest < 1 << 16:  # these NumPy sorts in linear time
        order = np.argsort((key - key.dtype.type(lowest)).astype(np.uint16), kind="stable")
    else:
        order = np.argsort(key, kind="stable")
    keys = key[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return Groups(
        keys[first].astype(np.int64),
        np.add.reduceat(count[order], first),
        np.add.reduceat(total[order], first),
        np.minimum.reduceat(minimum[order], first),
        np.maximum.reduceat(maximum[order], first),
    )


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals of each group, sorted by group and start."""

    group: Int64
    start: Int64
    end: Int64

    def total_by_group(self, groups: int) -> Int64:
        """Covered time of groups 0..groups-1."""
        return sum_by_group(self.group, self.end - self.start, groups)


def sum_by_group(group: Array, value: Array, groups: int) -> Int64:
    """Exact int64 sums of ``value`` for groups 0..groups-1."""
    out = np.zeros(groups, np.int64)
    stats = group_stats(group, value)
    out[stats.key] = stats.total
    return out


def union(group: Array, start: Array, end: Array) -> Intervals:
    """Union of the intervals [start, end) of each group (integers >= 0)."""
    if not len(group):
        empty = np.zeros(0, np.int64)
        return Intervals(empty, empty, empty)
    order = np.lexsort((start, group))
    group = np.asarray(group, np.int64)[order]
    start = np.asarray(start, np.int64)[order]
    end = np.maximum(np.asarray(end, np.int64)[order], start)
    # A running maximum of the ends that starts afresh in each group: ranks of the ends, lifted by the group's
    # position, keep groups apart without overflowing whatever the times are.
    by_end = np.argsort(end, kind="stable")
    rank = np.empty(len(end), np.int64)
    rank[by_end] = np.arange(len(end))
    position = np.cumsum(np.r_[False, group[1:] != group[:-1]])
    reach = np.maximum.accumulate(rank + position * len(end)) - position * len(end)
    latest = end[by_end[reach]]
    opens = np.r_[True, (group[1:] != group[:-1]) | (start[1:] > latest[:-1])]
    first = np.flatnonzero(opens)
    last = np.r_[first[1:], len(group)] - 1
    return Intervals(group[first], start[first], latest[last])


def covered_before(start: Int64, end: Int64, time: Array) -> Int64:
    """Time covered by the sorted disjoint intervals before each ``time``."""
    if not len(start):
        return np.zeros(len(time), np.int64)
    cumulative = np.r_[0, np.cumsum(end - start)]
    index = np.searchsorted(start, time, side="right")
    inside = np.minimum(np.asarray(time, np.int64), end[np.maximum(index - 1, 0)]) - start[np.maximum(index - 1, 0)]
    return np.where(index > 0, cumulative[np.maximum(index - 1, 0)] + inside, 0)
