"""nvprof's summary: time by kernel, copy and set, and by API function."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof import enums
from cuptiprof.report.model import Block, Column
from cuptiprof.report.names import display_name
from cuptiprof.result import Result
from cuptiprof.tables import Array, Table

COLUMNS = [
    Column("percent", "Time(%)", "percent"),
    Column("time_ns", "Time", "time"),
    Column("calls", "Calls", "count"),
    Column("avg_ns", "Avg", "time"),
    Column("min_ns", "Min", "time"),
    Column("max_ns", "Max", "time"),
    Column("name", "Name"),
]


def blocks(result: Result, *, demangle: bool = True, limit: int | None = None) -> list[Block]:
    """Two blocks; percentages within each, rows by falling time."""
    gpu = _by_code(result.kernels, "name", lambda c: display_name(result.kernels.strings[c], demangle))
    gpu += _by_code(result.memcpys, "copy_kind", lambda c: f"[CUDA memcpy {enums.MEMCPY_KINDS.get(c, 'Unknown')}]")
    gpu += _by_code(result.memsets, None, lambda _: "[CUDA memset]")
    api = _by_code(result.api_calls, "name", lambda c: display_name(result.api_calls.strings[c], False))
    return [_block("GPU activities", gpu, limit), _block("API calls", api, limit)]


def _by_code(table: Table, column: str | None, name_of: Any) -> list[dict[str, Any]]:
    if not len(table):
        return []
    duration = table["duration"]
    codes = table.codes(column) if column else np.zeros(len(table), np.uint32)
    return [{"name": name_of(code), **numbers} for code, numbers in group(codes, duration)]


def group(codes: Array, duration: Array) -> list[tuple[int, dict[str, Any]]]:
    """(code, {calls, time_ns, avg_ns, min_ns, max_ns}) for each distinct code."""
    order = np.argsort(codes, kind="stable")
    sorted_codes, sorted_time = codes[order], duration[order]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
    sums = np.add.reduceat(sorted_time, starts)
    lows = np.minimum.reduceat(sorted_time, starts)
    highs = np.maximum.reduceat(sorted_time, starts)
    counts = np.diff(np.r_[starts, len(codes)])
    return [
        (
            int(sorted_codes[s]),
            {
                "calls": int(n),
                "time_ns": int(t),
                "avg_ns": float(t / n),
                "min_ns": int(low),
                "max_ns": int(high),
            },
        )
        for s, t, low, high, n in zip(starts, sums, lows, highs, counts, strict=True)
    ]


def _block(title: str, rows: list[dict[str, Any]], limit: int | None) -> Block:
    rows = _same_names(rows)
    total = sum(r["time_ns"] for r in rows)
    for r in rows:
        r["percent"] = 100.0 * r["time_ns"] / total if total else 0.0
    rows.sort(key=lambda r: (-r["time_ns"], r["name"]))
    note = f"... and {len(rows) - limit} more" if limit is not None and len(rows) > limit else ""
    ordered = [{c.key: r[c.key] for c in COLUMNS} for r in rows[:limit]]
    return Block(title, COLUMNS, ordered, note=note)


def _same_names(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kernels of different mangled but equal shown names are one row."""
    out: dict[str, dict[str, Any]] = {}
    for r in rows:
        known = out.get(r["name"])
        if known is None:
            out[r["name"]] = r
            continue
        known["calls"] += r["calls"]
        known["time_ns"] += r["time_ns"]
        known["avg_ns"] = known["time_ns"] / known["calls"]
        known["min_ns"] = min(known["min_ns"], r["min_ns"])
        known["max_ns"] = max(known["max_ns"], r["max_ns"])
    return list(out.values())
