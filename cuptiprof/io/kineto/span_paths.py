"""Paths of nested spans: names from the outermost, joined by ``/``. Most spans share their path with many others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuptiprof.io.kineto.trace_columns import Int64
from cuptiprof.text.names import escape_name

LONGEST = 8192
"""characters of a path; what is deeper has the path of what is around it, as in a session"""


class SpanPaths:
    """Paths in a forest.

    Attributes:
        depth: how many are around each row.
        cut: rows asked for that have the path of what is around them, for want of room.
    """

    def __init__(self, parent: Int64, name: Int64, strings: Sequence[str]) -> None:
        self._parent, self._name, self._strings = parent, name, strings
        self.depth = _depths(parent)
        self.cut = 0
        # By number of the path; 0 is that of no span.
        self._texts, self._is_cut = [""], [False]
        self._cut_of: dict[int, int] = {}

    def of(self, rows: Int64) -> tuple[list[str], Int64]:
        """Different paths, and for each of the rows which of them it has."""
        needed = self._with_those_around(rows)
        needed = needed[np.argsort(self.depth[needed], kind="stable")]
        edges = np.flatnonzero(np.diff(self.depth[needed], prepend=-1)).tolist()
        number = np.zeros(len(self._parent) + 1, np.int64)  # the last one is that of -1, no span
        # Level by level: that of the path around and a name make the next.
        for begin, until in zip(edges, [*edges[1:], len(needed)], strict=False):
            level = needed[begin:until]
            around = number[self._parent[level]]
            number[level] = around
            goes_on = ~np.array(self._is_cut)[around]
            if not goes_on.any():
                self._inherit(number, needed[:begin], needed[begin:])
                break
            level, around = level[goes_on], around[goes_on]
            pairs = around * len(self._strings) + self._name[level]
            _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
            outer, name = around[first].tolist(), self._name[level[first]].tolist()
            number[level] = np.array([self._below(o, n) for o, n in zip(outer, name, strict=True)], np.int64)[
                which.reshape(-1)
            ]
        out = number[rows]
        self.cut += int(np.array(self._is_cut)[out].sum())
        return self._texts, out

    def _below(self, outer: int, name: int) -> int:
        """Number of the path of a name within another path."""
        text = (self._texts[outer] + "/" if outer else "") + escape_name(self._strings[name])
        if len(text) <= LONGEST:
            return self._new(text, is_cut=False)
        if not outer:
            return self._new(text[:LONGEST], is_cut=True)
        if outer not in self._cut_of:
            self._cut_of[outer] = self._new(self._texts[outer], is_cut=True)
        return self._cut_of[outer]

    def _new(self, text: str, *, is_cut: bool) -> int:
        self._texts.append(text)
        self._is_cut.append(is_cut)
        return len(self._texts) - 1

    def _with_those_around(self, rows: Int64) -> Int64:
        asked = np.zeros(len(self._parent), bool)
        up = rows
        while len(up):
            asked[up] = True
            up = self._parent[up]
            up = np.unique(up[up >= 0])
            up = up[~asked[up]]
        return np.flatnonzero(asked)

    def _inherit(self, number: Int64, known: Int64, rows: Int64) -> None:
        """All below what was cut have its path."""
        to = self._parent.copy()
        to[known] = known
        while True:
            further = to[to[rows]]
            if (further == to[rows]).all():
                break
            to[rows] = further
        number[rows] = number[to[rows]]


def _depths(parent: Int64) -> Int64:
    """How many are around each, by doubling steps; a parent may come after its child."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent
    while len(jump) and (jump >= 0).any():
        depth += np.where(jump >= 0, depth[jump], 0)
        jump = np.where(jump >= 0, jump[jump], -1)
    return depth
