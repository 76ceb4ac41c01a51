"""What the host did that has a name and a time (operators, regions, steps, CUDA calls), nested as torch.profiler nests it,
and the GPU work each of it launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.nesting import Nesting, depths, nest
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.data.codes import renumbered
from cuptiprof.data.enums import OPERATOR_SCOPES, code_of
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

USER_SCOPE = code_of(OPERATOR_SCOPES, "user")
BACKWARD_SCOPE = code_of(OPERATOR_SCOPES, "backward")

_Mask = npt.NDArray[np.bool_]

DISPATCH_MODE = "PythonDispatchMode"
# What torch.profiler leaves out: calls that only ask.
_LEFT_OUT = frozenset(
    {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)


class HostKind(IntEnum):
    """What a place of a :class:`HostTree` is: a row of ``operators``, ``regions``, ``markers`` (a step) or ``api_calls``."""

    OPERATOR = 0
    REGION = 1
    STEP = 2
    CALL = 3


TABLE_OF = {
    HostKind.OPERATOR: "operators",
    HostKind.REGION: "regions",
    HostKind.STEP: "markers",
    HostKind.CALL: "api_calls",
}


@dataclass(frozen=True)
class HostTree:
    """Places by thread and start, outer ones first. As in torch.profiler's tables, one that holds nothing but one of its own
    name is that one.

    Attributes:
        kind: HostKind of each. row: its row in that table.
        name: index into names; ``ProfilerStep#N`` of all N is ``ProfilerStep*``.
        start, end: ns, run clock.
        nesting: parents, and what lies inside; ``order`` is of no use here.
        is_annotation: a name that the user gave, no operator and no call.
        instance_place: place of each row of ``operators`` and then of ``regions``; -1: it is left out.
    """

    kind: npt.NDArray[np.uint8]
    row: Int64
    name: Int64
    names: list[str]
    thread: Int64
    start: Int64
    end: Int64
    nesting: Nesting
    is_annotation: npt.NDArray[np.bool_]
    instance_place: tuple[Int64, Int64]

    def __len__(self) -> int:
        return len(self.row)

    def host_self(self) -> Int64:
        """ns, without what lies directly inside."""
        duration = self.end - self.start
        return duration - self.nesting.children_sum(duration)

    def column(self, result: Result, column: str, fill: int = 0) -> Int64:
        """A column of ``operators`` (text: as it is stored) by place; `fill` for what is no operator."""
        out = np.full(len(self), fill, np.int64)
        mine = self.kind == HostKind.OPERATOR
        out[mine] = result.operators.codes(column)[self.row[mine]]
        return out

    def places(self, result: Result, work: Table) -> Int64:
        """Place of what launched each row of a table of GPU work: the innermost operator, else the innermost region; -1: none."""
        operators, regions = self.instance_place
        at = match(work.codes("operator_instance"), result.operators.codes("instance"))
        within = match(work.codes("region_instance"), result.regions.codes("instance"))
        by_operator = np.where(at >= 0, operators[at], -1) if len(operators) else at
        by_region = np.where(within >= 0, regions[within], -1) if len(regions) else within
        return np.where(by_operator >= 0, by_operator, by_region)

    def device_self(self, result: Result, weight: Callable[[Table], Int64] | None = None) -> Int64:
        """ns of the kernels, copies and sets that each place launched itself; `weight` of a table instead of durations."""
        out = np.zeros(len(self), np.int64)
        for name in ("kernels", "memcpys", "memsets"):
            work = result.tables[name]
            place = self.places(result, work)
            known = place >= 0
            value = weight(work) if weight is not None else work["duration"]
            np.add.at(out, place[known], value[known])
        return out


def host_tree(result: Result, merged: bool = True) -> HostTree:
    """The tree of a run; ``merged=False``: with those that are alone in one of their own name."""
    kinds = tuple(HostKind)
    tables = {kind: result.tables[TABLE_OF[kind]] for kind in kinds}
    rows = {kind: np.arange(len(table)) for kind, table in tables.items()}
    rows[HostKind.STEP] = np.flatnonzero(_is_step(tables[HostKind.STEP]))
    rows[HostKind.OPERATOR] = np.flatnonzero(~_left_out(tables[HostKind.OPERATOR]))

    def joined(column: str) -> Int64:
        return np.concatenate([tables[kind].codes(column)[rows[kind]].astype(np.int64) for kind in kinds])

    kind = np.concatenate([np.full(len(rows[kind]), kind, np.uint8) for kind in kinds])
    row = np.concatenate([rows[kind] for kind in kinds])
    name, names = _names(result, joined("name"))
    thread, start, end = joined("thread"), joined("start"), joined("end")
    found = nest(thread, start, end)
    order = found.order
    kind, row, name = kind[order], row[order], name[order]
    places = np.arange(len(order))
    keep, standing, nesting = (places, places, found)
    if merged:
        # On the simulated device a dispatch mode stands between an operator and what runs it, and launches beside that.
        mode = names.index(DISPATCH_MODE) if result.simulated and DISPATCH_MODE in names else -1
        hidden = (name == mode) & (found.parent >= 0)
        keep, standing, nesting = _merged(name, found, hidden, (kind == HostKind.CALL) & result.simulated)
    is_annotation = (kind == HostKind.REGION) | (kind == HostKind.STEP)
    operator = kind == HostKind.OPERATOR
    is_annotation[operator] = result.operators.codes("scope")[row[operator]] == USER_SCOPE
    return HostTree(
        kind[keep],
        row[keep],
        name[keep],
        names,
        thread[order][keep],
        start[order][keep],
        end[order][keep],
        nesting,
        is_annotation[keep],
        (
            _inverse(row[operator], standing[operator], len(result.operators)),
            _inverse(row[kind == HostKind.REGION], standing[kind == HostKind.REGION], len(result.regions)),
        ),
    )


def _merged(name: Int64, found: Nesting, hidden: _Mask, uncounted: _Mask) -> tuple[Int64, Int64, Nesting]:
    """Without those that are the only thing inside one of the same name: places that stay, which of them stands for each, and
    their nesting. What is `hidden` is as what is around it; what is `uncounted` may be there beside the only thing."""
    places = np.arange(len(name))
    visible = np.where(hidden, found.parent, places)
    while hidden[visible].any():
        visible = visible[visible]
    parent = np.where(found.parent >= 0, visible[np.maximum(found.parent, 0)], -1)
    inside = (parent >= 0) & ~hidden
    children = np.bincount(parent[inside & ~uncounted], minlength=len(parent))
    merged = hidden.copy()
    merged[inside] = (name[parent[inside]] == name[inside]) & (children[parent[inside]] == 1)
    if not merged.any():
        return places, places, found
    keep = np.flatnonzero(~merged)
    root = np.where(merged, parent, places)
    while merged[root].any():
        root = root[root]
    before = np.cumsum(~merged)
    standing = before[root] - 1
    outer = parent[keep]
    parent_kept = np.where(outer >= 0, standing[np.maximum(outer, 0)], -1)
    after = np.r_[0, before][found.after[keep]]
    return keep, standing, Nesting(np.arange(len(keep)), parent_kept, depths(parent_kept), after)


def _inverse(row: Int64, place: Int64, rows: int) -> Int64:
    out = np.full(rows, -1, np.int64)
    out[row] = place
    return out


def _is_step(markers: Table) -> Array:
    code = markers.strings.find("step")
    mask: Array = markers.codes("category") == (code if code is not None else -1)
    return mask


def _left_out(operators: Table) -> Array:
    codes = [code for name in _LEFT_OUT if (code := operators.strings.find(name)) is not None]
    return np.isin(operators.codes("name"), np.array(codes, np.int64))


def _names(result: Result, codes: Int64) -> tuple[Int64, list[str]]:
    used, which = renumbered(codes)
    strings = result.kernels.strings
    known: dict[str, int] = {}
    ids = []
    for code in used.tolist():
        text = str(strings[code])
        ids.append(known.setdefault("ProfilerStep*" if text.startswith("ProfilerStep#") else text, len(known)))
    return np.asarray(ids, np.int64)[which], list(known)
