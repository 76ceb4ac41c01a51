"""Nested spans by their names from the outermost: most spans have that in common with many others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuptiprof.data.codes import distinct
from cuptiprof.io.kineto.trace_columns import Int64
from cuptiprof.text.names import escape_name

LONGEST = 8192
"""characters of a path; what is deeper has the path of what is around it, as in a session"""
DEEPEST = 1000
"""names of a stack"""


class SpanTrie:
    """Sequences of names, each a node: the node of what is around, and a name. Node 0 is that of no span.

    Attributes:
        depth: how many are around each row.
        outer, name: of each node the node around it and its name, as an index into the strings.
        cut: rows asked for that have the node of what is around them, for want of room.
    """

    def __init__(self, parent: Int64, name: Int64, names: int) -> None:
        self._parent, self._name, self._names = parent, name, names
        self.depth = _depths(parent)
        self.outer, self.name, self._is_cut = [0], [0], [False]
        self._cut_of: dict[int, int] = {}
        self._node_depth = [0]
        self.cut = 0

    def of(self, rows: Int64) -> Int64:
        """Node of each of the rows. Asked once: the next time nodes would be made again."""
        needed = self._with_those_around(rows)
        needed = needed[np.argsort(self.depth[needed], kind="stable")]
        edges = np.flatnonzero(np.diff(self.depth[needed], prepend=-1)).tolist()
        node = np.zeros(len(self._parent) + 1, np.int64)  # the last one is that of -1, no span
        # Level by level: the node around and a name make the next.
        for begin, until in zip(edges, [*edges[1:], len(needed)], strict=False):
            level = needed[begin:until]
            around = node[self._parent[level]]
            node[level] = around
            goes_on = ~np.array(self._is_cut)[around]
            if not goes_on.any():
                self._inherit(node, needed[:begin], needed[begin:])
                break
            level, around = level[goes_on], around[goes_on]
            pairs = around * self._names + self._name[level]
            _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
            outer, name = around[first].tolist(), self._name[level[first]].tolist()
            made = [self._below(o, n) for o, n in zip(outer, name, strict=True)]
            node[level] = np.array(made, np.int64)[which.reshape(-1)]
        out = node[rows]
        self.cut += int(np.array(self._is_cut)[out].sum())
        return out

    def _below(self, outer: int, name: int) -> int:
        """A new node for a name within another one, or the one that stands for all that is too deep."""
        if self._fits(outer, name):
            return self._new(outer, name, is_cut=False)
        if outer not in self._cut_of:
            self._cut_of[outer] = self._new(outer, name, is_cut=True)
        return self._cut_of[outer]

    def _fits(self, outer: int, name: int) -> bool:
        del name
        return self._node_depth[outer] < DEEPEST

    def _new(self, outer: int, name: int, *, is_cut: bool) -> int:
        self.outer.append(outer)
        self.name.append(name)
        self._is_cut.append(is_cut)
        self._node_depth.append(self._node_depth[outer] + 1)
        return len(self.outer) - 1

    def _with_those_around(self, rows: Int64) -> Int64:
        asked = np.zeros(len(self._parent), bool)
        up = rows
        while len(up):
            asked[up] = True
            up = self._parent[up]
            up = distinct(up[up >= 0])
            up = up[~asked[up]]
        return np.flatnonzero(asked)

    def _inherit(self, node: Int64, known: Int64, rows: Int64) -> None:
        """All below what was cut have its node."""
        to = self._parent.copy()
        to[known] = known
        while True:
            further = to[to[rows]]
            if (further == to[rows]).all():
                break
            to[rows] = further
        node[rows] = node[to[rows]]


class SpanPaths(SpanTrie):
    """Paths: names joined by ``/``.

    Attributes:
        texts: of each node.
    """

    def __init__(self, parent: Int64, name: Int64, strings: Sequence[str]) -> None:
        super().__init__(parent, name, len(strings))
        self._strings = strings
        self.texts = [""]

    def _fits(self, outer: int, name: int) -> bool:
        return len(self._text(outer, name)) <= LONGEST

    def _new(self, outer: int, name: int, *, is_cut: bool) -> int:
        # Only an outermost one is cut inside of its name.
        self.texts.append(self.texts[outer] if is_cut and outer else self._text(outer, name)[:LONGEST])
        return super()._new(outer, name, is_cut=is_cut)

    def _text(self, outer: int, name: int) -> str:
        return (self.texts[outer] + "/" if outer else "") + escape_name(self._strings[name])


def _depths(parent: Int64) -> Int64:
    """How many are around each, by doubling steps; a parent may come after its child."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent
    while len(jump) and (jump >= 0).any():
        depth += np.where(jump >= 0, depth[jump], 0)
        jump = np.where(jump >= 0, jump[jump], -1)
    return depth
