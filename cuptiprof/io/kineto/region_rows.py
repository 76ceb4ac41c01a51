"""User annotations of a trace as regions, and which of them is open where something happens."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.data.tables import Array, Strings
from cuptiprof.io.kineto.backward_threads import BackwardThreads
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.operator_rows import Operators
from cuptiprof.io.kineto.span_paths import SpanPaths
from cuptiprof.io.kineto.thread_spans import ThreadSpans
from cuptiprof.io.kineto.trace_columns import Int64

_DEEPEST = 65535


class RegionRows:
    """Rows of ``regions``. On the threads of the autograd engine they lie in the region that is open where backward was called; where
    that is unknown, in that of the only other thread that has one open, else in the one in which the forward operator ran.

    Attributes:
        start, end, thread: of each row; ns.
        code: path of each row, as an index into the strings.
        instance: key of each row, 1, 2, 3, ...
        cut: rows whose path had no room.
    """

    def __init__(self, rows: EventRows, operators: Operators, backward: BackwardThreads, strings: Strings) -> None:
        self._operators, self._backward = operators, backward
        kept = rows.kept({"name": rows.text("name"), "thread": rows.low32("tid")})
        self.start, self.end, self.thread = rows.start, rows.end, kept["thread"]
        self._spans = ThreadSpans(self.thread, self.start, self.end)
        self._others = np.flatnonzero((self._spans.parent < 0) & ~backward.is_worker(self.thread))
        self._alone: tuple[Int64, Int64] | None = None
        # Threads as they come in the file, those that others' regions are inherited from first.
        _, first, which = np.unique(self.thread, return_index=True, return_inverse=True)
        key = np.where(backward.is_worker(self.thread), len(self.thread), 0) + first[which.reshape(-1)]
        self._order = self._spans.order[np.argsort(key[self._spans.order], kind="stable")]
        self.instance = np.empty(len(self.start), np.int64)
        self.instance[self._order] = np.arange(1, len(self.start) + 1)
        self._parent = self._spans.parent.copy()
        outermost = np.flatnonzero((self._parent < 0) & backward.is_worker(self.thread))
        self._parent[outermost] = self._inherited(self.thread[outermost], self.start[outermost])
        paths = SpanPaths(self._parent, kept["name"], strings)
        node = paths.of(np.arange(len(self.start)))
        self.code: Int64 = np.array([strings.code(text) for text in paths.texts], np.int64)[node]
        self.cut = paths.cut
        self._name, self._depth = kept["name"], paths.depth

    def columns(self) -> dict[str, Any]:
        """Columns of the table, threads one after the other, each by start."""
        parent = np.where(self._parent >= 0, self.instance[self._parent], 0) if len(self.start) else self._parent
        made = {
            "start": self.start,
            "end": self.end,
            "name": self._name,
            "path": self.code,
            "instance": self.instance,
            "parent": parent,
            "thread": self.thread,
            "depth": np.minimum(self._depth, _DEEPEST),
        }
        return {name: values[self._order] for name, values in made.items()}

    def at(self, thread: Int64, time: Int64) -> Int64:
        """Row of the innermost region open on each thread at each time, inherited ones included; -1: none."""
        row = self._spans.at(thread, time)
        lacking = np.flatnonzero(row < 0)
        lacking = lacking[self._backward.is_worker(thread[lacking])]
        row[lacking] = self._inherited(thread[lacking], time[lacking])
        return row

    def codes_and_instances(self, row: Int64) -> tuple[Int64, Int64]:
        """Path and instance of rows; 0 where they are -1."""
        if not len(self.start):
            return np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
        known = row >= 0
        return np.where(known, self.code[row], 0), np.where(known, self.instance[row], 0)

    def _inherited(self, thread: Int64, time: Int64) -> Int64:
        node = self._backward.nodes_at(thread, time)
        known = np.flatnonzero(node >= 0)
        row = np.full(len(time), -1, np.int64)
        row[known] = self._spans.at(self._operators.caller[node[known]], time[known])
        lacking = np.flatnonzero(row < 0)
        row[lacking] = self._of_the_only_thread(time[lacking])
        lacking = known[row[known] < 0]
        made = self._operators.forward[node[lacking]]
        lacking, made = lacking[made >= 0], made[made >= 0]
        row[lacking] = self._spans.at(self._operators.thread[made], self._operators.start[made])
        return row

    def _of_the_only_thread(self, time: Int64) -> Int64:
        """Row of the innermost region open on the only thread, workers aside, that has one open; -1: none, or several have."""
        rows = self._others
        if not len(rows) or not len(time):
            return np.full(len(time), -1, np.int64)
        threads, which = np.unique(self.thread[rows], return_inverse=True)
        rank = which.reshape(-1) + 1
        edge = np.r_[self.start[rows], self.end[rows]]
        order = np.argsort(edge, kind="stable")
        step = np.r_[np.ones(len(rows), np.int64), -np.ones(len(rows), np.int64)]
        sums = [
            np.r_[0, np.cumsum((step * np.r_[weight, weight])[order])]
            for weight in (np.ones_like(rank), rank, rank * rank)
        ]
        at = np.searchsorted(edge[order], time, side="right")
        count, total, squares = (each[at] for each in sums)
        # All that are open are of one thread just where their ranks have no variance.
        alone = (count > 0) & (count * squares == total * total)
        thread = threads[np.where(alone, total // np.maximum(count, 1) - 1, 0).clip(0, len(threads) - 1)]
        return np.where(alone, self._spans.at(thread, time), -1)


def placed(regions: RegionRows, thread: Array, time: Array) -> dict[str, Int64]:
    """Columns ``region`` and ``region_instance`` of what happened on a thread at a time."""
    code, instance = regions.codes_and_instances(regions.at(thread, time))
    return {"region": code, "region_instance": instance}
