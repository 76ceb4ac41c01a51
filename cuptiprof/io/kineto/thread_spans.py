"""Nested spans of threads: which lies in which, and which of them is open at a time."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.nesting import nested
from cuptiprof.data.tables import Array
from cuptiprof.io.kineto.trace_columns import Int64


class ThreadSpans:
    """Spans as rows of any order.

    Attributes:
        order: rows, each thread's by start, outer ones first.
        parent: row of the innermost span around; -1: none.
    """

    def __init__(self, thread: Int64, start: Int64, end: Int64) -> None:
        self.start, self.end = start, end
        self.order, parent = nested(thread, start, end)
        self.parent = np.full(len(start), -1, np.int64)
        self.parent[self.order] = np.where(parent >= 0, self.order[np.maximum(parent, 0)], -1)
        on = thread[self.order]
        self._begins = np.flatnonzero(np.r_[True, on[1:] != on[:-1]][: len(on)])
        self._threads = on[self._begins]
        self._starts = start[self.order]
        self._jumps: list[Int64] | None = None

    def __len__(self) -> int:
        return len(self.start)

    def last_begun(self, thread: Array, at: Array) -> Int64:
        """Row of the span of each thread that began last at each time or before, the innermost of several; -1: none."""
        out = np.full(len(at), -1, np.int64)
        if not len(self) or not len(at):
            return out
        by_thread = np.argsort(thread, kind="stable")
        asked, first = np.unique(thread[by_thread], return_index=True)
        for one, queries in zip(asked.tolist(), np.split(by_thread, first[1:]), strict=True):
            place = int(np.searchsorted(self._threads, one))
            if place == len(self._threads) or self._threads[place] != one:
                continue
            begin = int(self._begins[place])
            until = int(self._begins[place + 1]) if place + 1 < len(self._begins) else len(self)
            found = np.searchsorted(self._starts[begin:until], at[queries], side="right") - 1
            out[queries] = np.where(found >= 0, self.order[begin + np.maximum(found, 0)], -1)
        return out

    def at(self, thread: Array, at: Array) -> Int64:
        """Row of the innermost span of each thread that is open at each time (begun, and not ended); -1: none."""
        return self.still_open(self.last_begun(thread, at), at)

    def still_open(self, row: Int64, at: Array) -> Int64:
        """Of each span itself and those around it the innermost that ends after a time; -1: none."""
        row = row.copy()
        ended = np.flatnonzero(row >= 0)
        ended = ended[self.end[row[ended]] <= at[ended]]
        if not len(ended):
            return row
        to, time = row[ended], at[ended]
        # What is around ends no earlier, so the way out can be taken in steps that halve.
        for jump in reversed(self._doubling()):
            further = jump[to]
            goes = (further >= 0) & (self.end[further] <= time)
            to = np.where(goes, further, to)
        row[ended] = self.parent[to]
        return row

    def inside(self, chosen: Array) -> Array:
        """Which spans are among the chosen ones (bool), or within one."""
        out = np.array(chosen, bool)
        for jump in self._doubling():
            out |= np.where(jump >= 0, out[jump], False)
        return out

    def _doubling(self) -> list[Int64]:
        """Row of the span 1, 2, 4, ... around each; -1: none."""
        if self._jumps is None:
            self._jumps = []
            jump = self.parent
            while len(jump) and (jump >= 0).any():
                self._jumps.append(jump)
                jump = np.where(jump >= 0, jump[jump], -1)
        return self._jumps
