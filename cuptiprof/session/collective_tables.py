"""The table ``collectives`` of a cycle, from the calls of torch.distributed that were followed and the operators that C++ called."""

from __future__ import annotations

import json
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

    A ``c10d::`` operator inside of a followed call is that call; one outside was called by C++, as DistributedDataParallel does: its group
    is not known, its size where operators were recorded with shapes, and torch shows the type.
    """
    operators, regions = tables["operators"], tables["regions"]
    strings = operators.strings
    rows = [_of_call(call) for call in calls]
    for i in _c10d(operators):
        row = operators.row(i)
        inside = [r for r in rows if r["thread"] == row["thread"] and r["start"] <= row["start"] <= r["end"]]
        if inside:
            inside[0].setdefault("operator_instance", row["instance"])
            inside[0].setdefault("module", row["module"])
        else:
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
