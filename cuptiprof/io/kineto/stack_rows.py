"""Where Python stood, as a trace says it: functions as slices (``python_function``, with_stack=True), or a text on an operator
("Call stack", older ones and ours)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cuptiprof.data.tables import Strings
from cuptiprof.io.allocator_rows import FrameTree
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.span_paths import DEEPEST, SpanTrie
from cuptiprof.io.kineto.thread_spans import ThreadSpans
from cuptiprof.io.kineto.trace_columns import Int64

FUNCTIONS = "python_function"

_FRAME = re.compile(r"(.*)\((\d{1,9})\): (.*)", re.DOTALL)
_INSTALLED = re.compile(r"torch/|.*(?:/site-packages/|/dist-packages/|/lib/python3)|<")
"""Kineto cuts a file's name behind site-packages."""


class StackRows:
    """Stacks of functions, and rows of ``stacks``."""

    def __init__(self, rows: EventRows, strings: Strings) -> None:
        self._strings = strings
        self._tree = FrameTree(strings, lambda file: _INSTALLED.match(file) is None)
        kept = rows.kept({"name": rows.text("name"), "thread": rows.low32("tid")})
        self._spans = ThreadSpans(kept["thread"], rows.start, rows.end)
        self._name = kept["name"]

    def at(self, thread: Int64, time: Int64) -> dict[str, Int64]:
        """Columns "stack" and "line" of what happened on a thread at a time; 0: no Python there, or the trace does not say."""
        row = self._spans.at(thread, time)
        out = {name: np.zeros(len(row), np.int64) for name in ("stack", "line")}
        known = np.flatnonzero(row >= 0)
        if not len(known):
            return out
        used, which = np.unique(row[known], return_inverse=True)
        trie = SpanTrie(self._spans.parent, self._name, len(self._strings))
        node = trie.of(used)
        # A node comes behind the one around it.
        places = [(0, 0)]
        for outer, name in zip(trie.outer[1:], trie.name[1:], strict=True):
            places.append(self._tree.below(places[outer], _frame(self._strings[name])))
        found = np.array(places, np.int64)[node][which.reshape(-1)]
        out["stack"][known], out["line"][known] = found[:, 0], found[:, 1]
        return out

    def of_texts(self, rows: EventRows) -> Int64:
        """stacks.id of the "Call stack" of each event, shape (rows, 2) with the string index of the user's innermost line."""
        found: Int64 = rows.of_text("Call stack", self._of_text).reshape(-1, 2)
        return found

    def columns(self) -> dict[str, list[int]]:
        """Columns of the table."""
        return self._tree.rows

    def _of_text(self, text: Any) -> tuple[int, int]:
        if not isinstance(text, str) or not text:
            return 0, 0
        place = (0, 0)
        for frame in reversed(text.split(";")[-DEEPEST:]):
            place = self._tree.below(place, _frame(frame))
        return place


def _frame(text: str) -> dict[str, Any]:
    match = _FRAME.fullmatch(text)
    if match is None:  # <built-in method ...>, nn.Module: Linear_0
        return {"filename": "", "name": text, "line": 0}
    return {"filename": match[1], "name": match[3], "line": int(match[2])}
