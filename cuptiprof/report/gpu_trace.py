"""nvprof's --print-gpu-trace: every kernel, copy and set in the order of their start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cuptiprof.enums import MEMORY_KINDS, word
from cuptiprof.report import heading
from cuptiprof.report.activities import kernel_names, memcpy_names, origin_ns
from cuptiprof.report.aggregate import AnyArray
from cuptiprof.report.model import Column, TableModel
from cuptiprof.report.view import Options, left_out

if TYPE_CHECKING:
    from cuptiprof.result import Result, Table

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
    Column("grid", "Grid Size", "dim3", min_width=19),
    Column("block", "Block Size", "dim3", min_width=14),
    Column("registers_per_thread", "Regs", "count", min_width=4),
    Column("static_shared_memory", "SSMem", "bytes", min_width=8),
    Column("dynamic_shared_memory", "DSMem", "bytes", min_width=8),
    Column("bytes", "Size", "bytes", min_width=8),
    Column("bytes_per_second", "Throughput", "byte_rate"),
    Column("src_memory", "SrcMemType", "label"),
    Column("dst_memory", "DstMemType", "label"),
    Column("device_name", "Device", "label"),
    Column("device", "Device", "id", human=False),
    Column("context", "Context", "id"),
    Column("stream", "Stream", "id"),
    Column("kind", "Kind", "label", human=False),
    Column("thread", "Thread", "id", human=False),
    Column("correlation_id", "Correlation", "id", human=False),
    Column("region", "Region", "label"),
    Column("name", "Name", "text", suffix_key="correlation_id"),
)


class GpuTraceView:
    """One row an activity. In the text form the correlation ID follows the name, in brackets."""

    name = "gpu-trace"
    help = "every kernel, copy and set in order, as nvprof --print-gpu-trace"

    def build(self, result: Result, options: Options) -> TableModel:
        tables = [result.tables[name] for name in ("kernels", "memcpys", "memsets")]
        start = np.concatenate([table["start"] for table in tables])
        order = np.argsort(start, kind="stable")[: options.limit]
        # Only the rows to be shown are taken from each table.
        first = np.cumsum([0, *(len(table) for table in tables)])
        which = np.searchsorted(first, order, side="right") - 1
        devices = _device_names(result)
        parts: list[dict[str, Any]] = []
        for i, (table, describe) in enumerate(zip(tables, (_kernels, _memcpys, _memsets), strict=True)):
            rows = order[which == i] - first[i]
            parts.append(_common(table, rows, devices) | describe(table, rows, options))
        shown = np.argsort(np.argsort(which, kind="stable"), kind="stable")
        data = {
            column.key: _merge([part.get(column.key) for part in parts], which, shown) for column in _COLUMNS
        }
        columns = _COLUMNS
        if not any(data["region"]):
            columns = tuple(
                replace(column, human=False) if column.key == "region" else column for column in _COLUMNS
            )
        return TableModel(
            view=self.name,
            title="GPU trace",
            columns=columns,
            data=data,
            preamble=heading.preamble(result, "Profiling result:"),
            footers=(*left_out(len(start), len(order)), *_LEGEND),
            notes={"": "No kernels were recorded."},
            losses=heading.losses(result),
            losses_line=heading.losses_line(result.losses),
            facts=heading.facts(result) | {"total_rows": len(start)},
            origin_ns=origin_ns(result),
            prefix=heading.prefix(result),
        )


def _device_names(result: Result) -> dict[int, str]:
    devices = result.tables["devices"]
    return {
        int(ordinal): f"{name} ({ordinal})"
        for ordinal, name in zip(devices["device"], devices["name"], strict=True)
    }


def _common(table: Table, rows: AnyArray, devices: dict[int, str]) -> dict[str, list[Any]]:
    device = table["device"][rows].tolist()
    start = table["start"][rows]
    return {
        "start_ns": start.tolist(),
        "duration_ns": (table["end"][rows] - start).tolist(),
        "device": device,
        "device_name": [devices.get(ordinal, f"GPU ({ordinal})") for ordinal in device],
        "region": _strings(table, "region", rows),
        **{key: table[key][rows].tolist() for key in ("context", "stream", "thread", "correlation_id")},
    }


def _strings(table: Table, column: str, rows: AnyArray) -> list[str]:
    strings = table.strings
    return [strings[code] for code in table.codes(column)[rows].tolist()]


def _kernels(table: Table, rows: AnyArray, options: Options) -> dict[str, list[Any]]:
    names = kernel_names(table, options.demangling)

    def dims(what: str) -> list[Any]:
        return list(zip(*(table[f"{what}_{axis}"][rows].tolist() for axis in "xyz"), strict=True))

    counts = ("registers_per_thread", "static_shared_memory", "dynamic_shared_memory")
    return {
        "kind": ["kernel"] * len(rows),
        "name": [names.names[i] for i in names.ids[rows].tolist()],
        "grid": dims("grid"),
        "block": dims("block"),
        **{key: table[key][rows].tolist() for key in counts},
    }


def _rates(table: Table, rows: AnyArray) -> dict[str, list[Any]]:
    size = table["bytes"][rows]
    duration = table["end"][rows] - table["start"][rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(duration > 0, size * 1e9 / duration, np.nan)
    return {
        "bytes": size.tolist(),
        "bytes_per_second": [None if value != value else value for value in rate.tolist()],
    }


def _memcpys(table: Table, rows: AnyArray, options: Options) -> dict[str, list[Any]]:
    names = memcpy_names(table)
    return {
        "kind": ["memcpy"] * len(rows),
        "name": [names.names[i] for i in names.ids[rows].tolist()],
        "src_memory": [word(MEMORY_KINDS, kind) for kind in table["src_kind"][rows].tolist()],
        "dst_memory": [word(MEMORY_KINDS, kind) for kind in table["dst_kind"][rows].tolist()],
        **_rates(table, rows),
    }


def _memsets(table: Table, rows: AnyArray, options: Options) -> dict[str, list[Any]]:
    return {
        "kind": ["memset"] * len(rows),
        "name": ["[CUDA memset]"] * len(rows),
        "dst_memory": [word(MEMORY_KINDS, kind) for kind in table["memory_kind"][rows].tolist()],
        **_rates(table, rows),
    }


def _merge(parts: list[list[Any] | None], which: AnyArray, shown: AnyArray) -> list[Any]:
    """Values of the tables put into the order of display; None where a table has no such column."""
    counts = np.bincount(which, minlength=len(parts)).tolist()
    flat: list[Any] = []
    for part, count in zip(parts, counts, strict=True):
        flat += [None] * count if part is None else part
    return [flat[i] for i in shown.tolist()]
