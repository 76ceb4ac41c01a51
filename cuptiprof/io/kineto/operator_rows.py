"""Operators of a trace (``cpu_op``): rows of ``operators``, what is backward, and which forward operator each node of backward is of."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np

from cuptiprof.data.codes import distinct, distinct_rows, renumbered
from cuptiprof.data.enums import OPERATOR_SCOPES, code_of
from cuptiprof.data.tables import Array, Strings
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.span_paths import SpanPaths
from cuptiprof.io.kineto.stack_rows import StackRows
from cuptiprof.io.kineto.thread_spans import ThreadSpans
from cuptiprof.io.kineto.trace_columns import Int64, Mask

_FUNCTION, _BACKWARD = (code_of(OPERATOR_SCOPES, text) for text in ("function", "backward"))
_MOST_FORWARD_THREADS = 64
_EVALUATES = "autograd::engine::evaluate_function: "
_NODE = re.compile(r"autograd::engine::evaluate_function: |torch::autograd::|\w+Backwards?\d*$")
"""Nodes of backward by name; "Fwd thread id" is missing in some traces. Operators such as aten::mm_backward are none."""


class Arrows(NamedTuple):
    """Ends of arrows from forward operators (``source``) to nodes of backward, of each ID the last: thread and time in ns."""

    source_thread: Int64
    source_time: Int64
    target_thread: Int64
    target_time: Int64

    @classmethod
    def of(cls, sources: EventRows, targets: EventRows) -> Arrows:
        """Joined by their IDs."""
        ends = []
        for rows in (sources, targets):
            kept = rows.kept({"id": rows.count("id", 63), "thread": rows.low32("tid")})
            key, at = np.unique(kept["id"][::-1], return_index=True)
            ends.append((key, len(rows) - 1 - at, kept["thread"], rows.start))
        (key, at, thread, time), (other_key, other_at, other_thread, other_time) = ends
        _, mine, theirs = np.intersect1d(key, other_key, assume_unique=True, return_indices=True)
        at, other_at = at[mine], other_at[theirs]
        return cls(thread[at], time[at], other_thread[other_at], other_time[other_at])


class Operators:
    """Operators, one a row, in the order of the file.

    Attributes:
        thread, start: of each; ns.
        spans: how they lie in each other.
        instance: keys of the rows: the External ids of the file where each has one of its own.
        is_node: a node of backward.
        backward: one, or within one.
        forward: row of the operator that made the node; -1: none, or unknown.
        caller: thread of the forward operator of a node, which is taken for that which called backward; -1: unknown.
    """

    def __init__(self, rows: EventRows, arrows: Arrows, strings: Strings, stacks: StackRows) -> None:
        self._strings = strings
        name = rows.text("name")
        sequence = rows.number("Sequence number", -1)
        rows.refuse((sequence < -1) | (sequence >= 1 << 62), "it has no sequence number")
        evaluates = rows.of_text("name", lambda text: str(text).startswith(_EVALUATES), bool)
        of_backward = rows.of_text("name", lambda text: _NODE.match(str(text)) is not None, bool)
        forward_thread = rows.number("Fwd thread id")
        has_forward = forward_thread > 0
        shown = {
            field: rows.of_text(source, lambda value: strings.code(_json(value)))
            for field, source in (("shapes", "Input Dims"), ("dtypes", "Input type"))
        }
        written = stacks.of_texts(rows)
        self._columns = rows.kept(
            {
                "stack": written[:, 0],
                "line": written[:, 1],
                "name": name,
                "thread": rows.low32("tid"),
                "sequence": sequence + 1,
                **shown,
                "scope": np.where(has_forward & ~evaluates, _BACKWARD, _FUNCTION),
                "external": rows.low32("External id"),
                "is_node": has_forward | of_backward,
                "forward_thread": forward_thread,
            }
        )
        self.external: Int64 = self._columns.pop("external")
        self.is_node: Mask = self._columns.pop("is_node")
        forward_thread = self._columns.pop("forward_thread")
        self.thread: Int64 = self._columns["thread"]
        self.start, self.end, self.event = rows.start, rows.end, rows.event
        for column, of_functions in stacks.at(self.thread, self.start).items():
            self._columns[column] = np.where(of_functions > 0, of_functions, self._columns[column])
        self.spans = ThreadSpans(self.thread, self.start, self.end)
        self.instance = self._instances()
        self.backward = self.spans.inside(self.is_node)
        self.forward = np.full(len(self), -1, np.int64)
        self._join_arrows(arrows)
        self._join_numbers()
        self.caller = self._callers(forward_thread)

    def __len__(self) -> int:
        return len(self.start)

    def columns(self, region: Array, region_instance: Array) -> dict[str, Any]:
        """Columns of the table; of the region in which each began its path (as an index) and instance."""
        parent = self.spans.parent
        return {
            **self._columns,
            "start": self.start,
            "end": self.end,
            "instance": self.instance,
            "parent": np.where(parent >= 0, self.instance[parent], 0) if len(self) else parent,
            "region": region,
            "region_instance": region_instance,
            "backward": self.backward.astype(np.int64),
            "forward": np.where(self.forward >= 0, self.instance[self.forward], 0) if len(self) else parent,
        }

    def place_of(self, column: str) -> Int64:
        """Column "stack" or "line"."""
        found: Int64 = self._columns[column]
        return found

    def paths(self, rows: Int64) -> tuple[Int64, int]:
        """Paths of some operators, as indices into the strings, and how many of them had no room for all of it."""
        if not len(rows):
            return np.zeros(0, np.int64), 0
        paths = SpanPaths(self.spans.parent, self._columns["name"], self._strings)
        used, place = renumbered(paths.of(rows))
        return np.array([self._strings.code(paths.texts[i]) for i in used.tolist()], np.int64)[place], paths.cut

    def with_external(self, external: Int64) -> Int64:
        """Row of the operator with each External id; -1: none."""
        order = np.argsort(self.external, kind="stable")
        keys = self.external[order]
        at = np.searchsorted(keys, external, side="right") - 1
        if not len(keys):
            return np.full(len(external), -1, np.int64)
        found = (at >= 0) & (keys[np.maximum(at, 0)] == external) & (external > 0)
        return np.where(found, order[np.maximum(at, 0)], -1)

    def _instances(self) -> Int64:
        external = self.external
        if len(external) and external.min() > 0 and len(distinct(external)) == len(external):
            return external
        return np.arange(1, len(external) + 1)

    def _join_arrows(self, arrows: Arrows) -> None:
        if not len(self):
            return
        has_number = self._columns["sequence"] > 0
        source = self._begins(arrows.source_thread, arrows.source_time, has_number)
        other = self._begins(arrows.source_thread, arrows.source_time, np.ones(len(self), bool))
        source = np.where(source >= 0, source, other)
        target = self._begins(arrows.target_thread, arrows.target_time, self.is_node)
        good = (source >= 0) & (target >= 0)
        good[good] = ~self.backward[source[good]]
        self.forward[target[good]] = source[good]

    def _begins(self, thread: Int64, time: Int64, wanted: Mask) -> Int64:
        """Row of the innermost of the wanted operators that begin just then; -1: none."""
        row = self.spans.last_begun(thread, time)
        while True:
            row = np.where((row >= 0) & (self.start[row] == time), row, -1)
            further = np.flatnonzero((row >= 0) & ~wanted[row])
            if not len(further):
                return row
            row[further] = self.spans.parent[row[further]]

    def _join_numbers(self) -> None:
        """Where there are no arrows: the last operator before the node with its sequence number.

        Sequence numbers are each thread's own: where several threads had the number any could be meant.
        """
        number = self._columns["sequence"]
        nodes = np.flatnonzero(self.is_node & (self.forward < 0) & (number > 0))
        if not len(nodes):
            return
        makers = np.flatnonzero(~self.backward & (number > 0))
        makers = makers[np.isin(number[makers], number[nodes])]
        row = np.r_[nodes, makers]
        makes = np.r_[np.zeros(len(nodes), bool), np.ones(len(makers), bool)]
        order = np.lexsort((makes, self.start[row], number[row]))
        row, makes = row[order], makes[order]
        place = np.arange(len(row))
        begins = np.flatnonzero(np.r_[True, np.diff(number[row]) != 0])
        group = np.cumsum(np.r_[True, np.diff(number[row]) != 0]) - 1
        first = np.minimum.reduceat(np.where(makes, place, len(row)), begins)[group]
        last = np.maximum.accumulate(np.where(makes, place, -1))
        good = ~makes & (last >= begins[group]) & (first <= last)
        good[good] = self.thread[row[first[good]]] == self.thread[row[last[good]]]
        self.forward[row[good]] = row[last[good]]

    def _callers(self, forward_thread: Int64) -> Int64:
        """Torch numbers threads in its own way: which one a number means is what most of its nodes say, or most of their sequence
        numbers where those are not one thread's alone."""
        out = np.where(self.forward >= 0, self.thread[self.forward], -1) if len(self) else self.forward
        unknown = self.is_node & (out < 0) & (forward_thread > 0)
        number = self._columns["sequence"]
        makes = ~self.backward & (number > 0)
        for one in distinct(forward_thread[unknown]).tolist()[:_MOST_FORWARD_THREADS]:
            nodes = self.is_node & (forward_thread == one)
            said = out[nodes & (out >= 0)]
            if not len(said):
                makers = np.flatnonzero(makes & np.isin(number, number[nodes]))
                pairs, _ = distinct_rows(self.thread[makers], number[makers])
                said = pairs[:, 0]
            if len(said):
                threads, counts = np.unique(said, return_counts=True)
                out[nodes & (out < 0)] = threads[np.argmax(counts)]
        return out


def _json(value: Any) -> str:
    """A list as JSON text; "" for anything else."""
    if not isinstance(value, list):
        return ""
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return ""
