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


def group_stats(key: Array, value: Array, less: Array | None = None) -> Groups:
    """Count, sum, minimum and maximum of ``value`` (of ``value - less``, if given) for each distinct ``key`` (integers)."""
    parts = []
    for first in range(0, len(key), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        values = np.asarray(value[rows], np.int64)
        if less is not None:
            values = values - less[rows]
        parts.append(_reduced(key[rows], np.ones(len(values), np.int64), values, values, values))
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


def stable_order(key: Array) -> npt.NDArray[np.intp]:
    """``np.argsort(key, kind="stable")`` of integers, in linear time where they are within 65,536 of each other."""
    if len(key):
        lowest = int(key.min())
        if int(key.max()) - lowest < 1 << 16:
            key = (key - key.dtype.type(lowest)).astype(np.uint16)
    return np.argsort(key, kind="stable")


def _reduced(key: Array, count: Int64, total: Int64, minimum: Int64, maximum: Int64) -> Groups:
    order = stable_order(key)
    keys = key[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return Groups(
        keys[first].astype(np.int64),
        np.add.reduceat(count[order], first),
        np.add.reduceat(total[order], first),
        np.minimum.reduceat(minimum[order], first),
        np.maximum.reduceat(maximum[order], first),
    )


class Parts:
    """The rows of each of the groups 0..groups-1: ``parts[group]`` are row numbers, ascending."""

    def __init__(self, group: Array, groups: int) -> None:
        self._order = stable_order(group)
        self._edges = np.searchsorted(group[self._order], np.arange(groups + 1))

    def __getitem__(self, group: int) -> Int64:
        return self._order[self._edges[group] : self._edges[group + 1]]


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals of each group, sorted by group and start."""

    group: Int64
    start: Int64
    end: Int64

    def total_by_group(self, groups: int) -> Int64:
        """Covered time of groups 0..groups-1."""
        return sum_by_group(self.group, self.end - self.start, groups)


def sum_by_group(group: Array, value: Array, groups: int, less: Array | None = None) -> Int64:
    """Exact int64 sums of ``value`` (of ``value - less``, if given) for groups 0..groups-1."""
    out = np.zeros(groups, np.int64)
    stats = group_stats(group, value, less)
    out[stats.key] = stats.total
    return out


def union(group: Array, start: Array, end: Array) -> Intervals:
    """Union of the intervals [start, end) of each group (integers >= 0)."""
    if not len(group):
        empty = np.zeros(0, np.int64)
        return Intervals(empty, empty, empty)
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    by_time = bool((start[1:] >= start[:-1]).all())  # as the work of one stream is
    if not by_time or (group[1:] != group[:-1]).any():
        order = stable_order(group) if by_time else np.lexsort((start, group))
        group, start, end = group[order], start[order], end[order]
    end = np.maximum(end, start)
    new = np.r_[False, group[1:] != group[:-1]]
    latest = latest_so_far(np.cumsum(new), end) if new.any() else np.maximum.accumulate(end)
    opens = np.r_[True, new[1:] | (start[1:] > latest[:-1])]
    first = np.flatnonzero(opens)
    last = np.r_[first[1:], len(group)] - 1
    return Intervals(group[first].astype(np.int64), start[first], latest[last])


def latest_so_far(position: Int64, end: Int64) -> Int64:
    """The running maximum of `end`, which starts afresh where `position` (0, 0, 1, 1, 1, 2, ...) changes."""
    lowest = int(end.min())
    span = int(end.max()) - lowest + 1
    if span * (int(position[-1]) + 1) < 1 << 62:  # each group is lifted above the one before
        lift = position * span - lowest
        lifted = end + lift
        return np.maximum.accumulate(lifted, out=lifted) - lift
    # Times too far apart for that: the ranks of the ends are lifted instead.
    by_end = np.argsort(end, kind="stable")
    rank = np.empty(len(end), np.int64)
    rank[by_end] = np.arange(len(end))
    reach = np.maximum.accumulate(rank + position * len(end)) - position * len(end)
    out: Int64 = end[by_end[reach]]
    return out


def covered_by_group(group: Array, start: Int64, end: Int64, groups: int) -> Int64:
    """Time covered by the intervals of groups 0..groups-1, which come by start: the union's without the union, in little memory."""
    covered = np.zeros(groups, np.int64)
    reach = np.full(groups, int(start[0]) if len(start) else 0, np.int64)  # how far each group is covered so far
    for at in range(0, len(group), _AT_ONCE):
        rows = slice(at, at + _AT_ONCE)
        order = stable_order(group[rows])
        mine, begins = group[rows][order], start[rows][order]
        ends = np.maximum(end[rows][order], begins)
        new = np.r_[True, mine[1:] != mine[:-1]]
        first = np.flatnonzero(new)
        latest = np.maximum(latest_so_far(np.cumsum(new) - 1, ends), reach[mine])
        before = np.where(new, reach[mine], np.r_[0, latest[:-1]])
        gained = np.maximum(ends - np.maximum(begins, before), 0)
        covered[mine[first]] += np.add.reduceat(gained, first)
        reach[mine[first]] = latest[np.r_[first[1:], len(mine)] - 1]
    return covered


def covered_before(start: Int64, end: Int64, time: Array) -> Int64:
    """Time covered by the sorted disjoint intervals before each ``time``."""
    if not len(start):
        return np.zeros(len(time), np.int64)
    cumulative = np.r_[0, np.cumsum(end - start)]
    index = np.searchsorted(start, time, side="right")
    inside = np.minimum(np.asarray(time, np.int64), end[np.maximum(index - 1, 0)]) - start[np.maximum(index - 1, 0)]
    return np.where(index > 0, cumulative[np.maximum(index - 1, 0)] + inside, 0)
