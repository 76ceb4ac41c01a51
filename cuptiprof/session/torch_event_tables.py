"""The table ``operators`` of a cycle, and the operators of its GPU work, from what torch's own profiler said: by thread and time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.nesting import innermost, nest
from cuptiprof.analysis.operator_work.operator_places import operator_paths, region_places
from cuptiprof.data.enums import OPERATOR_SCOPES, code_of
from cuptiprof.data.tables import Array, Table
from cuptiprof.session.steps import Steps
from cuptiprof.session.torch_events import TakenEvents, TorchEvent
from cuptiprof.session.unix_times import run_times

Int64 = npt.NDArray[np.int64]
_BACKWARD = code_of(OPERATOR_SCOPES, "backward")
_AROUND_NODE = "autograd::engine::evaluate_function: "
_WORK = ("kernels", "memcpys", "memsets")


def add_torch_events(taken: TakenEvents, tables: dict[str, Table], steps: Steps | None, *, with_rows: bool) -> str:
    """Put the rows into `tables`, and the innermost operator of each call into the work that it caused.

    Args:
        with_rows: the level "full"; else the work alone has operators.

    Returns:
        A note for the user, or nothing.
    """
    strings = tables["operators"].strings
    columns, error = _columns(taken, tables["regions"])
    if error is None:
        return "the system's clock was set during the session: operators are missing"
    texts = ("name", "shapes", "dtypes")
    columns |= {name: [strings.code(text) for text in columns[name]] for name in texts}
    if steps is not None:
        columns["step"] = steps.numbers_at(columns["start"])
    operators = Table.from_columns("operators", columns, strings, rows=len(columns["start"]))
    if with_rows:
        tables["operators"] = operators
    if not len(operators):
        return ""
    if not len(tables["api_calls"]):
        return (
            'operators are joined by the times of API calls, which were not recorded (activities "runtime", "driver")'
        )
    paths = np.array([strings.code(path) for path in operator_paths(operators)], np.int64)
    for name in _WORK:
        tables[name] = _placed(tables[name], tables["api_calls"], operators, paths, with_rows=with_rows)
    return ""


def _columns(taken: TakenEvents, regions: Table) -> tuple[dict[str, Any], int | None]:
    """Columns of the table, texts as text; how far times may be off, None: nobody knows."""
    events = sorted(taken.events, key=lambda e: (e.thread, e.start, -e.end))
    unix = np.array([(e.start, e.end) for e in events], np.int64).reshape(-1, 2)
    start, error = run_times(unix[:, 0], taken.clocks)
    end = np.maximum(run_times(unix[:, 1], taken.clocks)[0], start)
    thread = np.array([e.thread for e in events], np.int64)
    # By the times that were told: on the run clock they are rounded.
    nesting = nest(thread, unix[:, 0], unix[:, 1])
    parent = np.full(len(events), -1, np.int64)
    parent[nesting.order] = np.where(nesting.parent >= 0, nesting.order[np.maximum(nesting.parent, 0)], -1)
    begins = np.array([e.scope == _BACKWARD or e.name.startswith(_AROUND_NODE) for e in events], bool)
    inside = begins[nesting.order]
    for depth in range(1, int(nesting.depth.max(initial=0)) + 1):
        level = np.flatnonzero(nesting.depth == depth)
        inside[level] |= inside[nesting.parent[level]]
    backward = np.empty(len(events), np.int64)
    backward[nesting.order] = inside
    forward = _forward(events)
    region = region_places(regions, start, start, thread.astype(np.uint32))
    in_region = region >= 0
    codes = {"region": "path", "region_instance": "instance"}
    return {
        "name": [e.name for e in events],
        "start": start,
        "end": end,
        "thread": thread,
        "instance": np.arange(1, len(events) + 1),
        "parent": parent + 1,
        "sequence": [0 if e.name.startswith(_AROUND_NODE) else e.sequence + 1 for e in events],
        "scope": [e.scope for e in events],
        "backward": backward,
        "forward": forward + 1,
        "shapes": [json.dumps(e.shapes) if taken.with_shapes else "" for e in events],
        "dtypes": [json.dumps(e.dtypes) if taken.with_shapes else "" for e in events],
        **{
            name: np.where(in_region, regions.codes(of)[region], 0) if len(regions) else np.zeros(len(events), np.int64)
            for name, of in codes.items()
        },
    }, error


def _forward(events: list[TorchEvent]) -> Int64:
    """Of each node of backward the last operator on the thread it names that had its sequence number before; -1: none."""
    makers: dict[tuple[int, int], int] = {}
    out = np.full(len(events), -1, np.int64)
    for i in sorted(range(len(events)), key=lambda i: events[i].start):
        e = events[i]
        if e.sequence < 0 or e.name.startswith(_AROUND_NODE):
            continue
        if e.scope == _BACKWARD:
            out[i] = makers.get((e.forward_thread, e.sequence), -1)
        else:
            makers[e.torch_thread, e.sequence] = i
    return out


def _placed(work: Table, calls: Table, operators: Table, paths: Int64, *, with_rows: bool) -> Table:
    keys = calls["correlation_id"]
    order = np.lexsort((calls["start"], keys))
    at = np.searchsorted(keys[order], work["correlation_id"], side="right") - 1
    call = order[np.maximum(at, 0)]
    known = np.flatnonzero((at >= 0) & (keys[call] == work["correlation_id"]) & (work["correlation_id"] != 0))
    row = np.full(len(work), -1, np.int64)
    row[known] = innermost(
        operators["thread"].astype(np.int64), operators["start"], operators["end"],
        calls["thread"][call[known]].astype(np.int64), calls["start"][call[known]],
    )  # fmt: skip
    values: dict[str, Array] = {"operator": paths, "backward": operators["backward"]}
    if with_rows:
        values["operator_instance"] = operators["instance"]
    for column, of in values.items():
        work = work.with_column(column, _all(np.where(row >= 0, of[row], 0).astype(work.codes(column).dtype)))
    return work


def _all(values: Array) -> Callable[[Table], Array]:
    return lambda _: values
