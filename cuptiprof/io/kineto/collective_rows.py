"""Collectives out of a trace: operators ``record_param_comms``, whose arguments say all of it (torch/csrc/profiler/util.h has
the names; older traces lack some), and annotations ``nccl:all_reduce``, ``gloo:...``, which have name, type and size."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cuptiprof.data.element_types import element_count, element_size, type_name
from cuptiprof.data.tables import Strings
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.thread_spans import ThreadSpans
from cuptiprof.io.kineto.trace_columns import Int64, TraceColumns
from cuptiprof.io.kineto.trace_values import is_within, number

_RECORD = "record_param_comms"
_BACKENDS = ("nccl:", "rccl:", "hccl:", "gloo:", "mpi:", "ucc:", "xccl:")
_NOT_ONE = ("wait", "init", "coalesced", "")
"""What has a record and does not communicate: waits, and what brackets several."""
_TEXTS = ("name", "group", "group_description", "backend", "dtype", "ranks")
_NO_SIZE = -1


def tell_of_collectives(columns: TraceColumns, events: Int64) -> Int64:
    """Those of the events (operators and annotations) that tell of a collective, ascending."""
    of_name = columns.mapped(columns.tokens("name", events), lambda token: _is_one(columns.value(token)), bool)
    return np.sort(events[of_name])


def collectives(rows: EventRows, strings: Strings) -> dict[str, Any]:
    """Columns of ``collectives`` by start, without those of regions."""
    is_record = rows.of_text("name", lambda name: name == _RECORD, bool)
    of_records, of_annotations = _of_records(rows, strings), _of_annotations(rows, strings)
    made = {name: np.where(is_record, of_records[name], of_annotations.get(name, 0)) for name in of_records}
    # What one says that is of the other kind is not asked of it.
    for name, bits in (("in_bytes", 63), ("out_bytes", 63), ("group_size", 32), ("sequence", 63)):
        made[name] = rows.limited(made[name], bits, name)
    rows.refuse(made["ranks"] < 0, "a rank is out of range")
    kept = rows.kept({**made, "is_record": is_record, "thread": rows.low32("tid")})
    is_record = kept.pop("is_record")
    table = {"start": rows.start, "end": rows.end, **kept}
    communicates = kept["name"] != 0
    for code in (strings.find(text) for text in _NOT_ONE):
        if code is not None:
            communicates &= ~is_record | (kept["name"] != code)
    chosen = np.flatnonzero(communicates & ~_inside_records(table, is_record & communicates))
    chosen = chosen[np.argsort(table["start"][chosen], kind="stable")]
    out: dict[str, Any] = {name: values[chosen] for name, values in table.items()}
    out["instance"] = np.arange(1, len(chosen) + 1)
    return out


def _is_one(name: Any) -> bool:
    return isinstance(name, str) and (name == _RECORD or name.startswith(_BACKENDS))


def _inside_records(table: dict[str, Any], is_record: Int64) -> Int64:
    """Annotations of what a record around them tells of."""
    records = np.flatnonzero(is_record)
    spans = ThreadSpans(table["thread"][records], table["start"][records], table["end"][records])
    around = spans.last_begun(table["thread"], table["start"])
    inside = around >= 0
    inside[inside] = table["end"][inside] <= spans.end[around[inside]]
    return inside & ~is_record


def _of_records(rows: EventRows, strings: Strings) -> dict[str, Any]:
    size = rows.of_text("dtype", element_size)
    name = rows.of_text("Collective name", lambda value: strings.code(_text(value)))
    sends = rows.of_text("Collective name", lambda value: value == "send", bool)
    receives = rows.of_text("Collective name", lambda value: value == "recv", bool)
    peer = np.where(sends, rows.number("Dst Rank", -1), np.where(receives, rows.number("Src Rank", -1), -1))
    group = np.where(
        rows.token("Process Group Name") >= 0, rows.token("Process Group Name"), rows.token("Process Group ID")
    )
    return {
        "name": name,
        "group": rows.columns.codes(group),
        "group_description": rows.text("Process Group Description"),
        "backend": np.full(len(rows), strings.code("nccl")),
        "dtype": rows.of_text("dtype", lambda value: strings.code(type_name(_text(value)))),
        "ranks": rows.of_text("Process Group Ranks", lambda value: _code_of_ranks(value, strings)),
        "group_size": rows.number("Group size"),
        "in_bytes": _bytes(rows.number("In msg nelems"), size),
        "out_bytes": _bytes(rows.number("Out msg nelems"), size),
        "peer": np.where((peer >= 0) & (peer < 2**32 - 1), peer + 1, 0),
        "sequence": rows.number("Seq", -1) + 1,
        "is_async": rows.of_text("Is asynchronized op", lambda value: int(value in (True, "True", "true"))),
    }


def _bytes(elements: Int64, size: Int64) -> Int64:
    return np.where(is_within(elements, 58), elements * size, _NO_SIZE)


def _of_annotations(rows: EventRows, strings: Strings) -> dict[str, Any]:
    dims, types = rows.token("Input Dims"), rows.token("Input type")
    pairs = dims * (int(types.max(initial=0)) + 2) + types + 1
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    found = [
        _type_and_bytes(rows.columns.value(d), rows.columns.value(t))
        for d, t in zip(dims[first].tolist(), types[first].tolist(), strict=True)
    ]
    size = np.array([bytes_ for _, bytes_ in found], np.int64)[which.reshape(-1)]
    dtype = np.array([strings.code(name) for name, _ in found], np.int64)[which.reshape(-1)]
    return {
        "name": rows.of_text("name", lambda name: strings.code(_text(name).partition(":")[2])),
        "backend": rows.of_text("name", lambda name: strings.code(_text(name).partition(":")[0])),
        "dtype": dtype,
        "in_bytes": size,
        "out_bytes": size,
    }


def _type_and_bytes(dims: Any, types: Any) -> tuple[str, int]:
    """Type of the elements of the inputs, and their bytes; -1: sizes that make no sense."""
    total, dtype = 0, ""
    if isinstance(dims, list) and isinstance(types, list):
        for shape, kind in zip(dims, types, strict=False):
            if element_size(kind):
                dtype = dtype or type_name(kind)
                try:
                    total += element_count(shape) * element_size(kind)
                except (TypeError, ValueError, RecursionError):
                    return dtype, _NO_SIZE
    return dtype, total if total < 1 << 62 else _NO_SIZE


def _code_of_ranks(value: Any, strings: Strings) -> int:
    """JSON of a list of ranks; torch shortens long ones ("[0, 1, ..., 63]"), which then say nothing. -1: no ranks."""
    try:
        ranks = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return 0
    if not isinstance(ranks, list):
        return 0
    whole = [number(rank) for rank in ranks]
    if any(not 0 <= rank < 1 << 32 for rank in whole):
        return -1
    return strings.code(json.dumps(whole, separators=(",", ":")))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
