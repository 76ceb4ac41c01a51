"""nvprof's --print-gpu-trace: every kernel, copy and set in the order of their start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cuptiprof.analysis.work.gpu_work import bandwidths, kernel_names, memcpy_names, origin_ns
from cuptiprof.data import enums
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.report.model import Column, View, left_out, nothing

_LEGEND = (
    "Regs: Number of registers used per CUDA thread.",
    "SSMem: Static shared memory allocated per CUDA block.",
    "DSMem: Dynamic shared memory allocated per CUDA block.",
    "SrcMemType: The type of source memory accessed by memory operation/copy",
    "DstMemType: The type of destination memory accessed by memory operation/copy",
)

_COLUMNS = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("grid", "Grid Size", "dims", min_width=19, rank=4),
    Column("block", "Block Size", "dims", min_width=14, rank=5),
    Column("registers", "Regs*", "count", min_width=8, rank=8),
    Column("static_shared_memory", "SSMem*", "bytes", min_width=8, rank=10),
    Column("dynamic_shared_memory", "DSMem*", "bytes", min_width=8, rank=9),
    Column("bytes", "Size", "bytes", min_width=8, rank=3),
    Column("throughput", "Throughput", "byte_rate", rank=6),
    Column("src_memory", "SrcMemType", "label", rank=12),
    Column("dst_memory", "DstMemType", "label", rank=11),
    Column("device", "Device", "label", rank=7),
    Column("context", "Context", "count", min_width=8, rank=13),
    Column("stream", "Stream", "count", min_width=8, rank=1),
    Column("correlation", "Correlation", "count", human=False),
    Column("region", "Region", "text", rank=2),
    Column("name", "Name", "text", suffix_key="correlation", is_function=True),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row an activity, by start. In plain text the correlation ID follows the name in brackets, as nvprof has it."""
    tables = [result.kernels, result.memcpys, result.memsets]
    start = np.concatenate([table["start"] for table in tables])
    order = np.argsort(start, kind="stable")[:limit]
    # Only the rows that are shown are taken from each table.
    first = np.cumsum([0, *(len(table) for table in tables)])
    which = np.searchsorted(first, order, side="right") - 1
    devices = _device_names(result)
    origin = origin_ns(result)
    parts: list[dict[str, Any]] = []
    for i, (table, describe) in enumerate(zip(tables, (_kernels, _memcpys, _memsets), strict=True)):
        rows = order[which == i] - first[i]
        parts.append(_common(table, rows, devices, origin) | describe(table, rows, demangle))
    shown = np.argsort(np.argsort(which, kind="stable"), kind="stable")
    # What is merged is not kept twice.
    data = {column.key: _merge([part.pop(column.key, None) for part in parts], which, shown) for column in _COLUMNS}
    hidden = () if any(data["region"]) else ("region",)
    return View(
        columns=tuple(replace(column, human=False) if column.key in hidden else column for column in _COLUMNS),
        data=data,
        footers=(*left_out(len(start), len(order)), *(_LEGEND if len(order) else ())),
        notes={"": nothing("GPU activities", result.losses["filter_rejected"])},
        facts={"origin_ns": origin, "total_rows": len(start)},
    )


def _device_names(result: Result) -> dict[int, str]:
    devices = result.tables["devices"]
    return {
        int(ordinal): f"{name} ({ordinal})" for ordinal, name in zip(devices["device"], devices["name"], strict=True)
    }


def _common(table: Table, rows: Array, devices: dict[int, str], origin: int) -> dict[str, list[Any]]:
    device = table["device"][rows].tolist()
    start = table["start"][rows]
    return {
        "start_ns": (start - origin).tolist(),
        "duration_ns": (table["end"][rows] - start).tolist(),
        "device": [devices.get(ordinal, f"GPU ({ordinal})") for ordinal in device],
        "region": _strings(table, "region", rows),
        "correlation": table["correlation_id"][rows].tolist(),
        **{key: table[key][rows].tolist() for key in ("context", "stream")},
    }


def _strings(table: Table, column: str, rows: Array) -> list[str | None]:
    strings = table.strings
    return [strings[code] or None for code in table.codes(column)[rows].tolist()]


def _kernels(table: Table, rows: Array, demangle: bool) -> dict[str, list[Any]]:
    names = kernel_names(table, demangle, rows)
    sizes = _launch_sizes(table, rows)
    return {"name": [names.names[i] for i in names.ids.tolist()], **sizes}


def _launch_sizes(table: Table, rows: Array) -> dict[str, list[Any]]:
    """One object a launch configuration, not a row: there may be millions."""
    used, which = renumbered(table.codes("config")[rows])
    assert table.configs is not None  # every Result gives its kernels one
    configs = table.configs.where(used)
    of_row = which.tolist()

    def each(values: list[Any]) -> list[Any]:
        return [values[i] for i in of_row]

    return {
        **{
            what: each(list(zip(*(configs[f"{what}_{axis}"].tolist() for axis in "xyz"), strict=True)))
            for what in ("grid", "block")
        },
        "registers": each(configs["registers_per_thread"].tolist()),
        **{key: each(configs[key].tolist()) for key in ("static_shared_memory", "dynamic_shared_memory")},
    }


def _rates(table: Table, rows: Array) -> dict[str, list[Any]]:
    rate = bandwidths(table, rows) * 1e9
    return {
        "bytes": table["bytes"][rows].tolist(),
        "throughput": [None if value != value else value for value in rate.tolist()],
    }


def _memcpys(table: Table, rows: Array, demangle: bool) -> dict[str, list[Any]]:
    names = memcpy_names(table, rows)
    return {
        "name": [names.names[i] for i in names.ids.tolist()],
        "src_memory": [enums.MEMORY_KINDS.get(kind, "Unknown") for kind in table["src_kind"][rows].tolist()],
        "dst_memory": [enums.MEMORY_KINDS.get(kind, "Unknown") for kind in table["dst_kind"][rows].tolist()],
        **_rates(table, rows),
    }


def _memsets(table: Table, rows: Array, demangle: bool) -> dict[str, list[Any]]:
    return {
        "name": ["[CUDA memset]"] * len(rows),
        "dst_memory": [enums.MEMORY_KINDS.get(kind, "Unknown") for kind in table["memory_kind"][rows].tolist()],
        **_rates(table, rows),
    }


def _merge(parts: list[list[Any] | None], which: Array, shown: Array) -> list[Any]:
    """Values of the tables put into the order of display; None where a table has no such column."""
    counts = np.bincount(which, minlength=len(parts)).tolist()
    flat: list[Any] = []
    for part, count in zip(parts, counts, strict=True):
        flat += [None] * count if part is None else part
    return [flat[i] for i in shown.tolist()]
