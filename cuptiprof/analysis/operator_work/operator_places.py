"""Where things happened of which only the time is known: on which thread, in which PyTorch operator.

PyTorch's caching allocator does not say which thread it worked for. Its times are whole microseconds. So an operator is named only where
one thread alone was inside operators during the whole of that microsecond, and then the innermost one that was open for all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.data.enums import OPERATOR_SCOPES, code_of
from cuptiprof.data.tables import Array, Table

Int64 = npt.NDArray[np.int64]
KNOWN, OUTSIDE, UNKNOWN = 1, 2, 0
"""``allocator_events.operator_known``."""
_USER = code_of(OPERATOR_SCOPES, "user")
_NONE = -1


@dataclass(frozen=True)
class OperatorPlaces:
    """Of each moment.

    Attributes:
        row: row of the innermost operator in ``operators``; -1: none.
        known: KNOWN, OUTSIDE or UNKNOWN.
    """

    row: Int64
    known: npt.NDArray[np.uint8]


def operator_places(
    operators: Table, begin: Array, end: Array, threads: Array, *, known_thread: int = 0
) -> OperatorPlaces:
    """What was surely open during each of the times from `begin` to `end` (ns, run clock).

    Args:
        threads: system thread ID of each; 0: unknown, then one thread alone must have been inside operators.
        known_thread: that of which the time would say that it is; 0: there is none.

    A thread that is only within scopes of the user's (``record_function``) may be waiting for another, as it does in backward: it counts
    where no thread is within an operator.
    """
    begin, end = np.asarray(begin, np.int64), np.asarray(end, np.int64)
    if not len(operators) or not len(begin):
        return OperatorPlaces(np.full(len(begin), _NONE, np.int64), np.zeros(len(begin), np.uint8))
    working = np.zeros(len(begin), np.int64)  # threads that were within operators, for part of the time at least
    scoped = np.zeros(len(begin), np.int64)
    row, in_scope = np.full(len(begin), _NONE, np.int64), np.full(len(begin), _NONE, np.int64)
    is_user = operators["scope"] == _USER
    for thread in np.unique(operators["thread"]).tolist():
        of_thread = _Thread(operators, np.flatnonzero(operators["thread"] == thread), is_user)
        innermost, touches_operator, touches = of_thread.look(begin, end)
        may_be = (threads == thread) | ((threads == 0) & (thread != known_thread))
        touches_operator, touches = touches_operator & may_be, touches & may_be
        working += touches_operator
        scoped += touches & ~touches_operator
        row = np.where(touches_operator, innermost, row)
        in_scope = np.where(touches & ~touches_operator, innermost, in_scope)
    row = np.where(working == 0, in_scope, row)
    alone = (working == 1) | ((working == 0) & (scoped == 1))
    nobody = (working == 0) & (scoped == 0)
    known = np.where(nobody, OUTSIDE, np.where(alone & (row != _NONE), KNOWN, UNKNOWN)).astype(np.uint8)
    return OperatorPlaces(np.where(known == KNOWN, row, _NONE), known)


def region_places(regions: Table, begin: Array, end: Array, threads: Array) -> Int64:
    """Row of the innermost region that the thread itself was in for all of each time; -1: none, or unknown.

    Where asyncio tasks interleave on the thread it is unknown whose time it was.
    """
    begin, end = np.asarray(begin, np.int64), np.asarray(end, np.int64)
    out = np.full(len(begin), _NONE, np.int64)
    for thread in np.unique(threads[threads != 0]).tolist():
        rows = np.flatnonzero(regions["thread"] == thread)
        if len(rows) and not regions["task"][rows].any():
            found = _Thread(regions, rows, np.zeros(len(regions), bool)).innermost(begin, end)
            out = np.where(threads == thread, found, out)
    return out


class _Thread:
    """The operators, or regions, of one thread, which are properly nested."""

    def __init__(self, scopes: Table, rows: Int64, is_user: Array) -> None:
        order = np.lexsort((-scopes["end"][rows], scopes["start"][rows]))
        self.rows = rows[order]
        self.start, self.end = scopes["start"][self.rows], scopes["end"][self.rows]
        self.is_user = is_user[self.rows]
        instance = scopes["instance"][self.rows].astype(np.int64)
        by_instance = np.argsort(instance)
        parent = scopes["parent"][self.rows].astype(np.int64)
        at = np.searchsorted(instance, parent, sorter=by_instance).clip(max=len(instance) - 1)
        found = by_instance[at]
        self.parent = np.where((parent != 0) & (instance[found] == parent), found, _NONE)

    def innermost(self, begin: Int64, end: Int64) -> Int64:
        """Row of the innermost that is open for all of each time; -1: none."""
        last = np.searchsorted(self.start, begin, side="right") - 1
        found = self._climb(last, lambda at, of: self.end[at] < end[of])
        return np.where(found == _NONE, _NONE, self.rows[found])

    def look(self, begin: Int64, end: Int64) -> tuple[Int64, Array, Array]:
        """Of each time: row of the innermost that is open for all of it, whether any operator was open for a part, and any at all."""
        last = np.searchsorted(self.start, begin, side="right") - 1
        innermost = self.innermost(begin, end)
        partly = self._climb(last, lambda at, of: self.end[at] <= begin[of])
        begins_within = np.searchsorted(self.start, end, side="left") > last + 1
        operator = self._climb(last, lambda at, of: (self.end[at] <= begin[of]) | self.is_user[at])
        # Of what begins within the time it is enough to know that something does: a scope of the user's counts as an operator there.
        touches = (partly != _NONE) | begins_within
        touches_operator = (operator != _NONE) | begins_within
        return innermost, touches_operator, touches

    def _climb(self, at: Int64, refuses: Callable[[Int64, Int64], Array]) -> Int64:
        """From each operator to the first of itself and those around it that `refuses` (operators, times) does not refuse."""
        at = at.copy()
        some = np.flatnonzero(at != _NONE)
        while len(some):
            some = some[refuses(at[some], some)]
            at[some] = self.parent[at[some]]
            some = some[at[some] != _NONE]
        return at


def operator_paths(operators: Table) -> list[str]:
    """Of each row the names from the outermost, joined by ``/``."""
    instances = operators["instance"].tolist()
    names, parents = operators["name"].tolist(), operators["parent"].tolist()
    row_of = {instance: i for i, instance in enumerate(instances)}
    paths: dict[int, str] = {0: ""}
    out = []
    for i in range(len(instances)):
        chain: list[int] = []
        at = instances[i]
        while at not in paths and at in row_of and len(chain) < _DEEPEST:
            chain.append(at)
            at = parents[row_of[at]]
        outer = paths.get(at, "")
        for each in reversed(chain):
            name = names[row_of[each]].replace("\\", "\\\\").replace("/", "\\/")
            outer = paths[each] = f"{outer}/{name}" if outer else name
        out.append(outer)
    return out


_DEEPEST = 10_000
