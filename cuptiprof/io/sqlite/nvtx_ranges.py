"""NVTX ranges that were pushed and popped, as regions, and which of them is open where something happens."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.data.tables import Array, Strings
from cuptiprof.io.kineto.span_paths import SpanPaths
from cuptiprof.io.kineto.thread_spans import ThreadSpans
from cuptiprof.io.sqlite.database import Int64

_DEEPEST = 65535
_KEPT = ("start", "end", "thread", "name", "domain", "source", "is_open")


class NvtxRanges:
    """Rows of ``regions``: the ranges of a thread nest, those of all domains together, as in a session.

    Attributes:
        cut: rows whose path had no room.
    """

    def __init__(self, columns: dict[str, Any], strings: Strings) -> None:
        """`columns`: start, end, thread, name, domain, source, is_open, each of shape (rows,); names and domains as indices into the strings."""
        self._columns = columns
        self._spans = ThreadSpans(columns["thread"], columns["start"], columns["end"])
        order, parent = self._spans.order, self._spans.parent
        self._instance = np.empty(len(order), np.int64)
        self._instance[order] = np.arange(1, len(order) + 1)
        paths = SpanPaths(parent, columns["name"], strings)
        node = paths.of(np.arange(len(order)))
        self._code: Int64 = np.array([strings.code(text) for text in paths.texts], np.int64)[node]
        self._depth, self.cut = paths.depth, paths.cut

    def columns(self) -> dict[str, Any]:
        """Columns of the table, threads one after the other, each by start."""
        parent, order = self._spans.parent, self._spans.order
        made = {
            **{name: self._columns[name] for name in _KEPT},
            "path": self._code,
            "instance": self._instance,
            "parent": np.where(parent >= 0, self._instance[parent], 0) if len(order) else parent,
            "depth": np.minimum(self._depth, _DEEPEST),
        }
        return {name: values[order] for name, values in made.items()}

    def placed(self, thread: Array, time: Array) -> dict[str, Int64]:
        """Columns ``region`` and ``region_instance`` of what happened on a thread at a time (ns)."""
        row = self._spans.at(thread, time)
        if not len(self._spans):
            return {name: np.zeros(len(row), np.int64) for name in ("region", "region_instance")}
        known = row >= 0
        return {
            "region": np.where(known, self._code[row], 0),
            "region_instance": np.where(known, self._instance[row], 0),
        }
