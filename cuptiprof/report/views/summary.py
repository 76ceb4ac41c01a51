"""nvprof's summary: time by kernel and copy kind, and by API function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuptiprof.analysis.aggregate import Int64, group_stats
from cuptiprof.analysis.gpu_work import NameIds, gpu_work
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out

GPU_BLOCK = "GPU activities"
API_BLOCK = "API calls"

_COLUMNS = (
    Column("block", "Type", "label", human=False),
    Column("percent", "Time(%)", "percent", min_width=7),
    Column("time_ns", "Time", "duration", min_width=8),
    Column("calls", "Calls", "count", min_width=8),
    Column("avg_ns", "Avg", "duration", min_width=8),
    Column("min_ns", "Min", "duration", min_width=8),
    Column("max_ns", "Max", "duration", min_width=8),
    Column("name", "Name", "text"),
)
_TYPE = Column("type", "Type", "label", machine=False, min_width=16)
_DEVICE = Column("device", "Device", "count", human=False)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, per_gpu: bool = False) -> View:
    """Rows by total time; percentages are of the block's total. ``per_gpu``: one block of GPU activities for each GPU."""
    work = gpu_work(result, demangle)
    duration = work.end - work.start
    blocks: list[tuple[str, int | None, Int64, NameIds]] = []
    if per_gpu:
        for device in np.unique(work.device).tolist():
            mine = work.device == device
            ids = NameIds(work.name.ids[mine], work.name.names)
            blocks.append((f"{GPU_BLOCK} (GPU {device})", device, duration[mine], ids))
    if not blocks:
        blocks.append((GPU_BLOCK, None, duration, work.name))
    api = result.api_calls
    codes = NameIds(api.codes("name").astype(np.int64), api.strings)
    blocks.append((API_BLOCK, None, api["end"] - api["start"], codes))

    data: dict[str, list[Any]] = {column.key: [] for column in (*_COLUMNS, _TYPE, _DEVICE)}
    notes: dict[str, str] = {}
    footers: tuple[str, ...] = ()
    for title, gpu, durations, names in blocks:
        rows, total = _rows(durations, names.ids, names.names, limit)
        footers += left_out(total, len(rows), f"rows of {title}")
        if not total:
            notes[title] = f"No {'API calls' if title == API_BLOCK else 'GPU activities'} were recorded."
        for row in rows:
            for key, value in row.items():
                data[key].append(value)
        data["type"] += [title] * len(rows)
        data["block"] += [title if gpu is None else GPU_BLOCK] * len(rows)
        data["device"] += [gpu] * len(rows)
    columns = (_TYPE, *_COLUMNS, *((_DEVICE,) if per_gpu else ()))
    return View(columns=columns, data=data, footers=footers, notes=notes, block_key="type")


def _rows(duration: Int64, ids: Int64, names: Sequence[str], limit: int | None) -> tuple[list[dict[str, Any]], int]:
    """One dict a name, by total time (then name), and how many there were before the limit."""
    stats = group_stats(ids, duration)
    whole = int(stats.total.sum())
    order = sorted(range(len(stats.key)), key=lambda i: (-int(stats.total[i]), names[int(stats.key[i])]))
    rows = [
        {
            "percent": 100.0 * total / whole if whole else 0.0,
            "time_ns": total,
            "calls": calls,
            "avg_ns": total / calls,
            "min_ns": int(stats.minimum[i]),
            "max_ns": int(stats.maximum[i]),
            "name": names[int(stats.key[i])],
        }
        for i in order[:limit]
        for total, calls in [(int(stats.total[i]), int(stats.count[i]))]
    ]
    return rows, len(order)
