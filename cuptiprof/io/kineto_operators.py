"""The operators of a torch.profiler trace (``cpu_op``) as rows of ``operators``, and which of them launched what."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.analysis.nesting import Nesting, innermost, nest
from cuptiprof.data.enums import OPERATOR_SCOPES, code_of
from cuptiprof.data.tables import Array, Strings
from cuptiprof.text.names import escape_name

_FUNCTION, _BACKWARD = (code_of(OPERATOR_SCOPES, text) for text in ("function", "backward"))
_EVALUATES = "autograd::engine::evaluate_function: "


class Launches(NamedTuple):
    """Of GPU work: the operator's instance and path (as a string index), and whether backward launched it."""

    instance: Int64
    path: Int64
    backward: Int64


class OperatorEvents:
    """Operators as they come in a file, and the arrows from forward to backward.

    Attributes:
        autograd_threads: threads on which the autograd engine ran a node.
    """

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._rows: dict[str, list[int]] = defaultdict(list)
        self._external: list[int] = []
        self._is_node: list[bool] = []
        self._arrows: dict[str, dict[int, tuple[int, int]]] = {"s": {}, "f": {}}
        self.autograd_threads: set[int] = set()

    def __len__(self) -> int:
        return len(self._external)

    @property
    def threads(self) -> list[int]:
        return self._rows["thread"]

    @property
    def starts(self) -> list[int]:
        return self._rows["start"]

    def by_start(self) -> list[int]:
        """Rows by their start."""
        order: list[int] = np.argsort(np.asarray(self.starts, np.int64), kind="stable").tolist()
        return order

    @cached_property
    def _nesting(self) -> Nesting:
        """Asked for when the last one was added."""
        return nest(*(np.asarray(self._rows[name], np.int64) for name in ("thread", "start", "end")))

    def add(self, name: str, start: int, end: int, thread: int, external: int, args: Mapping[str, Any]) -> None:
        """One operator; `external` is its External id.

        Raises:
            OverflowError, ValueError: a number that makes no sense. Nothing is added.
        """
        sequence = int(args.get("Sequence number", -1))
        forward_thread = int(args.get("Fwd thread id", 0))
        if not -1 <= sequence < 1 << 62:
            raise OverflowError("no sequence number")
        shapes, types = _json(args.get("Input Dims")), _json(args.get("Input type"))
        if name.startswith(_EVALUATES):
            self.autograd_threads.add(thread)
        row = {
            "start": start,
            "end": end,
            "name": self._strings.code(name),
            "thread": thread,
            "sequence": sequence + 1,
            "shapes": self._strings.code(shapes),
            "dtypes": self._strings.code(types),
            "scope": _BACKWARD if forward_thread > 0 and not name.startswith(_EVALUATES) else _FUNCTION,
        }
        for column, value in row.items():
            self._rows[column].append(value)
        self._external.append(external)
        self._is_node.append(forward_thread > 0 or name.startswith(_EVALUATES))

    def arrow(self, phase: str, key: int, thread: int, time: int) -> None:
        """One end of an arrow from a forward operator ("s") to a node of backward ("f")."""
        self._arrows[phase][key] = thread, time

    def columns(self, regions: Int64) -> dict[str, Any]:
        """Columns of the table; `regions`, shape (rows, 2), are code and instance of the region in which each began."""
        if not len(self):
            return {}
        rows = {name: np.asarray(values, np.int64) for name, values in self._rows.items()}
        found, instance = self._nesting, self.instances()
        outer = np.where(found.parent >= 0, found.order[np.maximum(found.parent, 0)], -1)
        parent = np.empty(len(self), np.int64)
        parent[found.order] = np.where(outer >= 0, instance[outer], 0)
        backward = self._backward()
        return {
            **rows,
            "instance": instance,
            "parent": parent,
            "region": regions[:, 0],
            "region_instance": regions[:, 1],
            "backward": backward,
            "forward": self._forward(rows, instance, backward),
        }

    def instances(self) -> Int64:
        """Keys of the rows: the External ids of the file where each has one of its own."""
        external = np.asarray(self._external, np.int64)
        if len(np.unique(external)) == len(external) and external.min() > 0:
            return external
        return np.arange(1, len(external) + 1)

    def launches(self, thread: Array, time: Int64, external: Int64) -> Launches:
        """What launched work on `thread` at `time`, ns; where the thread is 0 its call is not in the file, and `external`, the
        External id of the work, is believed."""
        count = len(time)
        if not len(self):
            return Launches(*(np.zeros(count, np.int64) for _ in range(3)))
        rows = {name: np.asarray(self._rows[name], np.int64) for name in ("thread", "start", "end")}
        row = innermost(rows["thread"], rows["start"], rows["end"], thread, time)
        by_id = {key: i for i, key in enumerate(self._external) if key > 0}
        unseen = np.flatnonzero(np.asarray(thread) == 0)
        row[unseen] = [by_id.get(key, -1) for key in external[unseen].tolist()]
        known, at = row >= 0, np.maximum(row, 0)
        used, which = np.unique(at, return_inverse=True)
        paths = np.array([self._strings.code(path) for path in self._paths(used)], np.int64)
        return Launches(
            np.where(known, self.instances()[at], 0),
            np.where(known, paths[which.reshape(-1)], 0),
            np.where(known, self._backward()[at], 0),
        )

    def _paths(self, rows: Int64) -> list[str]:
        place = np.empty(len(self), np.int64)
        place[self._nesting.order] = np.arange(len(self))
        out = []
        for at in place[rows].tolist():
            names: list[str] = []
            while at >= 0 and len(names) < _DEEPEST:
                names.append(escape_name(str(self._strings[self._rows["name"][int(self._nesting.order[at])]])))
                at = int(self._nesting.parent[at])
            out.append("/".join(reversed(names)))
        return out

    def _backward(self) -> Int64:
        """1 for the nodes of backward and what lies in them."""
        found = self._nesting
        node = np.asarray(self._is_node, np.int64)[found.order]
        edges = np.zeros(len(node) + 1, np.int64)
        np.add.at(edges, np.flatnonzero(node), 1)
        np.add.at(edges, found.after[node > 0], -1)
        out = np.empty(len(node), np.int64)
        out[found.order] = np.cumsum(edges[:-1]) > 0
        return out

    def _forward(self, rows: Mapping[str, Int64], instance: Int64, backward: Int64) -> Int64:
        """Of each node the operator that made it: by the arrows, else the last one before it with its sequence number."""
        out = np.zeros(len(self), np.int64)
        at = {place: i for i, place in enumerate(zip(self._rows["thread"], self._rows["start"], strict=True))}
        for key, end in self._arrows["f"].items():
            source, target = at.get(self._arrows["s"].get(key, (-1, 0))), at.get(end)
            if source is not None and target is not None and self._is_node[target] and not backward[source]:
                out[target] = instance[source]
        starts, threads = self._rows["start"], self._rows["thread"]
        made: dict[int, list[int]] = defaultdict(list)  # rows by start
        for i in self.by_start():
            number = self._rows["sequence"][i]
            if number and not backward[i]:
                made[number].append(i)
            # Sequence numbers are each thread's own: of several threads any could be meant.
            elif number and self._is_node[i] and not out[i] and made[number]:
                last = made[number][-1]
                alone = threads[last] == threads[made[number][0]]
                out[i] = instance[last] if alone and starts[last] < starts[i] else 0
        return out


_DEEPEST = 1000
"""names of a path; more are of no use to anybody"""


def _json(value: Any) -> str:
    """A list as JSON text; "" for anything else."""
    if not isinstance(value, list):
        return ""
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return ""
