"""Which interval lies in which: intervals of a thread as a tree, without a loop over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.tables import Array

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Nesting:
    """Intervals as a forest: each thread's by start, outer ones first, so that what an interval holds follows it.

    Attributes:
        order: row of each place.
        parent: place of the innermost interval around; -1: none.
        depth: how many are around.
        after: place behind the last one inside.
    """

    order: Int64
    parent: Int64
    depth: Int64
    after: Int64

    def subtree_sum(self, own: Int64) -> Int64:
        """Sum over each place and all inside it."""
        until = np.r_[0, np.cumsum(own)]
        out: Int64 = until[self.after] - until[:-1]
        return out

    def children_sum(self, value: Int64) -> Int64:
        """Sum over those directly inside each place."""
        inside = np.flatnonzero(self.parent >= 0)
        out = np.zeros(len(value), np.int64)
        np.add.at(out, self.parent[inside], value[inside])
        return out


def nest(thread: Array, start: Int64, end: Int64) -> Nesting:
    """The forest, as torch.profiler makes it: one that ends later than an earlier one lies outside of that."""
    return forest(*nested(thread, start, end))


def nested(thread: Array, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Order and parents of :func:`nest`, for whoever needs no more of it."""
    order = np.lexsort((-end, start, thread))
    begins, ends, on = start[order], end[order], thread[order]
    before = np.arange(len(order)) - 1
    before[np.r_[True, on[1:] != on[:-1]][: len(order)]] = -1
    parent = _nearest(before, lambda at, i: (ends[at] >= ends[i]) & (ends[at] > begins[i]))
    return order, parent


def forest(order: Int64, parent: Int64) -> Nesting:
    """A forest of which the parents are known; a parent comes before what is inside, and that follows it without a gap."""
    depth = depths(parent)
    # Mirrored, what comes after is the nearest before that is not deeper.
    mirrored = depth[::-1]
    last = len(parent) - 1
    following = _nearest(np.arange(len(parent)) - 1, lambda at, i: mirrored[at] <= mirrored[i])
    return Nesting(order, parent, depth, np.where(following < 0, len(parent), last - following)[::-1])


def _nearest(before: Int64, fits: Callable[[Int64, Int64], _Mask]) -> Int64:
    """For each place the nearest of those before it that fits; -1: none.

    `before` is the place to begin with. What does not fit a place must not fit those behind it for which that place does not
    fit either: so each skips what the one that it looked at has skipped, and steps double.
    """
    at: Int64 = before.copy()
    open_ = np.flatnonzero(at >= 0)
    while len(open_):
        open_ = open_[~fits(at[open_], open_)]
        at[open_] = at[at[open_]]
        open_ = open_[at[open_] >= 0]
    return at


def depths(parent: Int64) -> Int64:
    """How many parents each has, by doubling steps.

    Raises:
        ValueError: a parent does not come before its child.
    """
    if (parent >= np.arange(len(parent))).any():
        raise ValueError("a parent does not come before its child")
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    open_ = np.flatnonzero(jump >= 0)
    while len(open_):
        to = jump[open_]
        depth[open_] += depth[to]
        jump[open_] = jump[to]
        open_ = open_[jump[open_] >= 0]
    return depth


def innermost(thread: Array, start: Int64, end: Int64, at_thread: Array, at: Int64) -> Int64:
    """Row of the innermost interval of its thread that holds each time; -1: none does."""
    # A time is an interval without length: nothing lies in it.
    found = nest(np.r_[thread, at_thread], np.r_[start, at], np.r_[end, at])
    around = found.parent
    out = np.full(len(start) + len(at), -1, np.int64)
    out[found.order] = np.where(around >= 0, found.order[np.maximum(around, 0)], -1)
    rows: Int64 = out[len(start) :]
    return rows
