"""Sets of time: disjoint intervals of one thing, what several have in common, what lies inside a span."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, Intervals, covered_before, sum_by_group
from cuptiprof.data.tables import Array

_AT_ONCE = 1 << 17


def union_of(start: Array, end: Array) -> Intervals:
    """Union of [start, end), in any order; what ends before it starts takes no time."""
    if not len(start):
        empty = np.zeros(0, np.int64)
        return Intervals(empty, empty, empty)
    if not (start[1:] >= start[:-1]).all():
        order = np.argsort(start, kind="stable")  # of runs that are sorted already it makes one in linear time
        start, end = start[order], end[order]
    # So many at a time that what is computed on the way stays in a core's cache.
    begins, ends, reach = [], [], int(start[0])
    for first in range(0, len(start), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        so_far = np.maximum(end[rows], start[rows])
        so_far[0] = max(int(so_far[0]), reach)
        np.maximum.accumulate(so_far, out=so_far)
        before = np.r_[reach, so_far[:-1]]
        opens = start[rows] > before
        opens[0] |= not first
        begins.append(start[rows][opens])
        ends.append(before[opens])  # of the intervals before those
        reach = int(so_far[-1])
    start = np.concatenate(begins)
    return Intervals(np.zeros(len(start), np.int64), start, np.r_[np.concatenate(ends)[1:], reach])


def union_of_all(parts: Sequence[Intervals]) -> Intervals:
    """Union of unions."""
    there = [part for part in parts if len(part.start)]
    if len(there) <= 1:
        return there[0] if there else union_of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return union_of(np.concatenate([p.start for p in there]), np.concatenate([p.end for p in there]))


def length(intervals: Intervals) -> int:
    """Time covered, ns."""
    return int((intervals.end - intervals.start).sum())


def time_within(intervals: Intervals, start: Int64, end: Int64) -> Int64:
    """Time that the intervals and each [start, end) have in common, ns."""
    return covered_before(intervals.start, intervals.end, end) - covered_before(intervals.start, intervals.end, start)


def time_by_set(parts: Sequence[Intervals]) -> dict[int, int]:
    """Time by which of the unions run at once: bit i of the key is ``parts[i]``; times of nothing are not in it.

    One sweep over all beginnings and ends, in order of time.
    """
    time = np.concatenate([np.zeros(0, np.int64), *(edge for part in parts for edge in (part.start, part.end))])
    change = np.concatenate(
        [np.zeros(0, np.int64), *(np.full(len(p.start), sign << i) for i, p in enumerate(parts) for sign in (1, -1))]
    )
    if not len(time):
        return {}
    order = np.argsort(time, kind="stable")
    running = np.cumsum(change[order])[:-1]
    lasted = np.diff(time[order])
    counts = lasted > 0  # between edges of one instant the sum may be of any kind, for no time
    totals = sum_by_group(running[counts], lasted[counts], 1 << len(parts))
    return {which: total for which, total in enumerate(totals.tolist()) if which and total}
