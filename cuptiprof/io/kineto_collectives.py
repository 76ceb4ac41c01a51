"""Collectives out of a torch.profiler trace: operators ``record_param_comms``, whose arguments say all of it (torch/csrc/profiler/util.h has
the names; older traces lack some), and annotations ``nccl:all_reduce``, ``gloo:...``, which have name, type and size."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from typing import Any

import numpy as np

from cuptiprof.analysis.collective_work import kernels_of_collectives
from cuptiprof.analysis.operator_places import region_places
from cuptiprof.data.element_types import element_count, element_size, type_name
from cuptiprof.data.tables import Strings, Table

_RECORD = "record_param_comms"
_BACKENDS = ("nccl:", "gloo:", "mpi:", "ucc:", "xccl:")
_NOT_ONE = ("wait", "init", "coalesced", "")
"""What has a record and does not communicate: waits, and what brackets several."""


def is_collective(name: str) -> bool:
    """Whether an operator or annotation of that name tells of a collective."""
    return name == _RECORD or name.startswith(_BACKENDS)


class CollectiveRows:
    """Rows of ``collectives``, as events come."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._rows: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any], args: dict[str, Any], start: int, end: int) -> None:
        """One event for which :func:`is_collective` holds.

        Raises:
            TypeError, ValueError, OverflowError: its arguments make no sense.
        """
        name = str(event["name"])
        row = _of_record(args) if name == _RECORD else _of_annotation(name, args)
        if row is not None:
            self._rows.append({"start": start, "end": end, "thread": _number(event.get("tid")) % 2**32, **row})

    def put(self, tables: dict[str, Table]) -> None:
        """The table among the others, with the regions of its rows, and whose the kernels are."""
        table = self._table(tables["regions"])
        if len(table):
            api_calls = tables["api_calls"]
            tables["kernels"] = tables["kernels"].with_column(
                "collective", lambda kernels: kernels_of_collectives(table, kernels, api_calls)
            )
        tables["collectives"] = table

    def _leave_out_annotations_of_records(self) -> None:
        """What a record tells of, the annotation inside of it tells of again."""
        records: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in sorted(self._rows, key=lambda row: row["start"]):
            if row["is_record"]:
                records[row["thread"]].append(row)
        starts = {thread: [row["start"] for row in rows] for thread, rows in records.items()}

        def is_inside(row: dict[str, Any]) -> bool:
            at = bisect_right(starts.get(row["thread"], []), row["start"]) - 1
            return at >= 0 and row["end"] <= records[row["thread"]][at]["end"]

        self._rows = [row for row in self._rows if row["is_record"] or not is_inside(row)]

    def _table(self, regions: Table) -> Table:
        self._leave_out_annotations_of_records()
        self._rows.sort(key=lambda row: row["start"])
        texts = ("name", "group", "group_description", "backend", "dtype", "ranks")
        numbers = ("start", "end", "thread", "in_bytes", "out_bytes", "group_size", "peer", "sequence", "is_async")
        columns: dict[str, Any] = {n: [self._strings.code(row.get(n, "")) for row in self._rows] for n in texts}
        columns |= {n: [row.get(n, 0) for row in self._rows] for n in numbers}
        columns["instance"] = list(range(1, len(self._rows) + 1))
        start, thread = np.array(columns["start"], np.int64), np.array(columns["thread"], np.uint32)
        found = region_places(regions, start, start, thread)
        if (found >= 0).any():
            for column, of in (("region", "path"), ("region_instance", "instance")):
                columns[column] = np.where(found >= 0, regions.codes(of)[found], 0)
        return Table.from_columns("collectives", columns, self._strings, rows=len(self._rows))


def _of_record(args: dict[str, Any]) -> dict[str, Any] | None:
    name = str(args.get("Collective name", ""))
    if name in _NOT_ONE:
        return None
    dtype = str(args.get("dtype", ""))
    size = element_size(dtype)
    ranks = _ranks(args.get("Process Group Ranks"))
    source, target = _number(args.get("Src Rank", -1)), _number(args.get("Dst Rank", -1))
    peer = target if name == "send" else source if name == "recv" else -1
    return {
        "is_record": True,
        "name": name,
        "group": str(args.get("Process Group Name", args.get("Process Group ID", ""))),
        "group_description": str(args.get("Process Group Description", "")),
        "backend": "nccl",
        "dtype": type_name(dtype),
        "ranks": ranks,
        "group_size": _fits(args.get("Group size"), 32),
        "in_bytes": _fits(_fits(args.get("In msg nelems"), 60) * size, 64),
        "out_bytes": _fits(_fits(args.get("Out msg nelems"), 60) * size, 64),
        "peer": peer + 1 if 0 <= peer < 2**32 - 1 else 0,
        "sequence": _fits(_number(args.get("Seq", -1)) + 1, 64),
        "is_async": int(args.get("Is asynchronized op") in (True, "True", "true")),
    }


def _of_annotation(text: str, args: dict[str, Any]) -> dict[str, Any]:
    backend, _, name = text.partition(":")
    dims, types = args.get("Input Dims"), args.get("Input type")
    bytes_, dtype = 0, ""
    if isinstance(dims, list) and isinstance(types, list):
        for shape, kind in zip(dims, types, strict=False):
            if element_size(kind):
                dtype = dtype or type_name(kind)
                bytes_ += element_count(shape) * element_size(kind)
    size = _fits(bytes_, 64)
    return {
        "is_record": False,
        "name": name,
        "backend": backend,
        "dtype": dtype,
        "in_bytes": size,
        "out_bytes": size,
    }


def _ranks(value: Any) -> str:
    """JSON of a list of ranks; torch shortens long ones ("[0, 1, ..., 63]"), which then say nothing."""
    try:
        ranks = json.loads(value) if isinstance(value, str) else value
        return json.dumps([_fits(rank, 32) for rank in ranks], separators=(",", ":")) if isinstance(ranks, list) else ""
    except (ValueError, RecursionError):
        return ""


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _fits(value: Any, bits: int) -> int:
    number = _number(value)
    if not 0 <= number < 1 << bits:
        raise OverflowError(f"{number} in {bits} bits")
    return number
