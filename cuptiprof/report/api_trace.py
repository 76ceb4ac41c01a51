"""nvprof's --print-api-trace: every API call in order of start."""

from __future__ import annotations

import numpy as np

from cuptiprof.report.model import Block, Column
from cuptiprof.report.names import display_name
from cuptiprof.result import Result

COLUMNS = [
    Column("start_ns", "Start", "start"),
    Column("duration_ns", "Duration", "time"),
    Column("thread", "Thread", "count"),
    Column("correlation", "Correlation", "count"),
    Column("return_value", "Result", "count"),
    Column("region", "Region"),
    Column("name", "Name"),
]


def blocks(result: Result, *, demangle: bool = True, limit: int | None = None) -> list[Block]:
    """One block; start is relative to the first call."""
    t = result.api_calls
    order = np.argsort(t["start"], kind="stable")[:limit]
    origin = int(t["start"].min()) if len(t) else 0
    names, regions, durations = t["name"], t["region"], t["duration"]
    rows = [
        {
            "start_ns": int(t["start"][i]) - origin,
            "duration_ns": int(durations[i]),
            "thread": int(t["thread"][i]),
            "correlation": int(t["correlation_id"][i]),
            "return_value": int(t["return_value"][i]) or None,
            "region": display_name(regions[i], False) or None,
            "name": display_name(names[i], False),
        }
        for i in order
    ]
    note = f"... and {len(t) - len(rows)} more" if len(rows) < len(t) else ""
    return [Block("", COLUMNS, rows, note=note)]
