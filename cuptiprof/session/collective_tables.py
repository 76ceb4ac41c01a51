"""The table ``collectives`` of a cycle, from the calls of torch.distributed that were followed and the operators that C++ called."""

from __future__ import annotations

import json
from bisect import bisect_right
from operator import itemgetter
from typing import Any

import numpy as np

from cuptiprof.analysis.collectives.collective_work import kernels_of_collectives
from cuptiprof.analysis.operator_work.operator_places import region_places
from cuptiprof.data.element_types import element_count, element_size, type_name
from cuptiprof.data.tables import Table
from cuptiprof.session.collective_calls import CollectiveCall
from cuptiprof.session.steps import Steps

_PREFIX = "c10d::"


def add_collectives(
    calls: list[CollectiveCall], lost: int, tables: dict[str, Table], losses: dict[str, int], steps: Steps | None
) -> None:
    """Put the rows into `tables`, and which kernels are whose into ``kernels.collective``.

    A ``c10d::`` operator inside of a followed call, or around what its backend recorded, is that call; another was called by C++, as
    DistributedDataParallel does, of a backend that records nothing: its group is not known, its size where operators were recorded with
    shapes, and torch shows the type.
    """
    operators, regions = tables["operators"], tables["regions"]
    strings = operators.strings
    rows = [_of_call(call) for call in calls]
    known = _ByThread(rows)
    for i in _c10d(operators):
        row = operators.row(i)
        same = known.inside_or_around(row)
        for one in same:
            one.setdefault("operator_instance", row["instance"])
            one.setdefault("module", row["module"])
        if not same:
            rows.append(_of_operator(row))
    rows.sort(key=lambda row: row["start"])
    for instance, row in enumerate(rows, 1):
        row["instance"] = instance
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = {"name", "group", "group_description", "backend", "dtype", "ranks", "module", "region"}
    columns: dict[str, Any] = {n: [row.get(n, "" if n in texts else 0) for row in rows] for n in names}
    columns = {n: [strings.code(v) for v in values] if n in texts else values for n, values in columns.items()}
    start, thread = np.array(columns.get("start", []), np.int64), np.array(columns.get("thread", []), np.uint32)
    found = region_places(regions, start, start, thread)
    inside_region = found >= 0
    if inside_region.any():
        for column, of in (("region", "path"), ("region_instance", "instance")):
            values = np.array(columns.get(column, np.zeros(len(rows))), np.uint32)
            columns[column] = np.where(inside_region, regions.codes(of)[found], values)
    if steps is not None:
        columns["step"] = steps.numbers_at(start)
    table = tables["collectives"] = Table.from_columns("collectives", columns, strings, rows=len(rows))
    losses["budget_evicted"] += lost
    kernels, api_calls = tables["kernels"], tables["api_calls"]
    if len(table):
        tables["kernels"] = kernels.with_column("collective", lambda own: kernels_of_collectives(table, own, api_calls))


class _ByThread:
    """Calls of each thread, which do not overlap there, by start."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._of_thread: dict[int, list[dict[str, Any]]] = {}
        for row in sorted(rows, key=lambda row: row["start"]):
            self._of_thread.setdefault(row["thread"], []).append(row)

    def inside_or_around(self, span: dict[str, Any]) -> list[dict[str, Any]]:
        """The call in which the span begins, and those that begin in the span."""
        mine = self._of_thread.get(span["thread"], [])
        first = bisect_right(mine, span["start"], key=itemgetter("start"))
        if first and span["start"] <= mine[first - 1]["end"]:
            first -= 1
        return mine[first : bisect_right(mine, span["end"], key=itemgetter("start"))]


def _c10d(operators: Table) -> list[int]:
    """Rows of operators that communicate, the outermost: what dispatches one again has a record within."""
    used = np.unique(operators.codes("name"))
    wanted = [code for code in used.tolist() if operators.strings[code].startswith(_PREFIX)]
    rows = np.flatnonzero(np.isin(operators.codes("name"), wanted))
    if not len(rows):
        return []
    parents = dict(zip(operators["instance"].tolist(), operators["parent"].tolist(), strict=True))
    communicate = set(operators["instance"][rows].tolist())

    def is_within(instance: int) -> bool:
        at = parents[instance]
        while at in parents and at not in communicate:
            at = parents[at]
        return at in communicate

    return [row for row in rows.tolist() if not is_within(int(operators["instance"][row]))]


def _of_call(call: CollectiveCall) -> dict[str, Any]:
    return {
        "start": call.start,
        "end": call.end,
        "thread": call.thread,
        "name": call.name,
        "group": call.group.name,
        "group_description": call.group.description,
        "backend": call.group.backend,
        "ranks": call.group.ranks,
        "group_size": call.group.size,
        "dtype": call.dtype,
        "in_bytes": call.in_bytes,
        "out_bytes": call.out_bytes,
        "peer": call.peer + 1,
        "sequence": call.sequence + 1,
        "is_async": int(call.is_async),
    }


def _of_operator(row: dict[str, Any]) -> dict[str, Any]:
    name = row["name"].removeprefix(_PREFIX)
    dtype, in_bytes, out_bytes = _sizes(name, row["shapes"], row["dtypes"])
    return {
        "start": row["start"],
        "end": row["end"],
        "thread": row["thread"],
        "name": name,
        "dtype": dtype,
        "in_bytes": in_bytes,
        "out_bytes": out_bytes,
        "operator_instance": row["instance"],
        "module": row["module"],
        "region": row["region"],
        "region_instance": row["region_instance"],
    }


def _sizes(name: str, shapes: str, dtypes: str) -> tuple[str, int, int]:
    """Type, bytes given and got of an operator whose inputs were recorded; nothing where torch does not say the type."""
    try:
        given = [
            (dtype, element_count(shape) * element_size(dtype))
            for shape, dtype in zip(json.loads(shapes or "[]"), json.loads(dtypes or "[]"), strict=False)
            if element_size(dtype)
        ]
    except (TypeError, ValueError):
        return "", 0, 0
    if not given:
        return "", 0, 0
    sizes = [size for _, size in given]
    out, into = (sizes[0], sizes[1]) if name in _OUTPUT_FIRST and len(sizes) > 1 else (sizes[0], sizes[0])
    return type_name(given[0][0]), into, out


_OUTPUT_FIRST = ("_allgather_base_", "_reduce_scatter_base_", "alltoall_base_")
