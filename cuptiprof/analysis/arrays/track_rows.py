"""Which row of the picture a slice is drawn on.

Viewers want the slices of one row (pid, tid) to nest: a slice that overlaps another without lying inside it is cut or
dropped. Kernels of one stream do overlap (programmatic dependent launch, graph branches), and so do regions of asyncio
tasks on one thread. What does not fit goes to a further row beside the first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.tables import Array

_Place = Callable[[list[int], list[int]], list[int]]

MAX_ROWS = 256  # rows tried for one group: past it (thousands of tasks at once) slices share the last

# tid of the k-th further row of stream or thread t: t + k * step. Thread IDs go to 2**22; tids stay below 2**31.
ROW_STEP = 1_000_000
HOST_ROW_STEP = 8_000_000


def serial_rows(group: Array, start: Array, end: Array) -> Int64:
    """Row (0, 1, ...) of each slice within its group so that the slices of a row follow each other."""
    return _assign(group, start, end, _place_serial)


def nested_rows(group: Array, start: Array, end: Array) -> Int64:
    """Row of each slice within its group so that any two slices of a row are disjoint or one holds the other."""
    return _assign(group, start, end, _place_nested)


def _assign(group: Array, start: Array, end: Array, place: _Place) -> Int64:
    out = np.zeros(len(group), np.int64)
    if len(group) < 2:
        return out
    order = np.lexsort((-np.asarray(end, np.int64), start, group))
    sorted_group = np.asarray(group)[order]
    edges = np.r_[0, np.flatnonzero(sorted_group[1:] != sorted_group[:-1]) + 1, len(order)]
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        mine = order[first:after]
        starts, ends = np.asarray(start, np.int64)[mine], np.asarray(end, np.int64)[mine]
        # The common case, one slice after the other, needs no loop.
        if (starts[1:] < np.maximum.accumulate(ends)[:-1]).any():
            out[mine] = place(starts.tolist(), ends.tolist())
    return out


def _place_serial(starts: list[int], ends: list[int]) -> list[int]:
    free: list[tuple[int, int]] = []  # (end of the last slice, row), rows in use
    rows = []
    count = 0
    idle: list[int] = []  # rows whose last slice has ended, lowest first
    for start, end in zip(starts, ends, strict=True):
        while free and free[0][0] <= start:
            heapq.heappush(idle, heapq.heappop(free)[1])
        if idle:
            row = heapq.heappop(idle)
        else:
            row = count
            count += 1
        heapq.heappush(free, (end, row))
        rows.append(row)
    return rows


def _place_nested(starts: list[int], ends: list[int]) -> list[int]:
    stacks: list[list[int]] = []  # ends of the open slices of each row
    rows = []
    for start, end in zip(starts, ends, strict=True):
        row = 0
        while row < len(stacks):
            stack = stacks[row]
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or stack[-1] >= end:
                break
            row += 1
        row = min(row, MAX_ROWS - 1)
        if row == len(stacks):
            stacks.append([])
        stacks[row].append(end)
        rows.append(row)
    return rows
