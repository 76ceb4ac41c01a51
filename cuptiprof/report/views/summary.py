"""nvprof's summary: time by kernel and copy kind, and by API function."""

from __future__ import annotations

from typing import Any

from cuptiprof.analysis.work.gpu_work import Times, gpu_times, times_by_code
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing

GPU_BLOCK = "GPU activities"
API_BLOCK = "API calls"

_COLUMNS = (
    Column("block", "Type", "label", human=False),
    Column("percent", "Time(%)", "percent", min_width=7),
    Column("time_ns", "Time", "duration", min_width=8),
    Column("calls", "Calls", "count", min_width=8),
    Column("avg_ns", "Avg", "duration", min_width=8),
    Column("min_ns", "Min", "duration", min_width=8, rank=2),
    Column("max_ns", "Max", "duration", min_width=8, rank=1),
    Column("name", "Name", "text", is_function=True),
)
_TYPE = Column("type", "Type", "label", machine=False, min_width=16)
_DEVICE = Column("device", "Device", "count", human=False)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, per_gpu: bool = False) -> View:
    """Rows by total time; percentages are of the block's total. ``per_gpu``: one block of GPU activities for each GPU."""
    blocks: list[tuple[str, int | None, dict[str, Times]]] = [
        (f"{GPU_BLOCK} (GPU {device})" if per_gpu else GPU_BLOCK, device if per_gpu else None, times)
        for device, times in gpu_times(result, demangle, per_gpu).items()
    ] or [(GPU_BLOCK, None, {})]
    api = result.api_calls
    blocks.append((API_BLOCK, None, times_by_code(api, api.codes("name"), api.strings.__getitem__)))

    data: dict[str, list[Any]] = {column.key: [] for column in (*_COLUMNS, _TYPE, _DEVICE)}
    notes: dict[str, str] = {}
    footers: tuple[str, ...] = ()
    for title, gpu, times in blocks:
        rows, total = _rows(times, limit), len(times)
        footers += left_out(total, len(rows), f"rows of {title}")
        if not total:
            is_api = title == API_BLOCK
            rejected = 0 if is_api else result.losses["filter_rejected"]
            notes[title] = nothing("API calls" if is_api else "GPU activities", rejected)
        for row in rows:
            for key, value in row.items():
                data[key].append(value)
        data["type"] += [title] * len(rows)
        data["block"] += [title if gpu is None else GPU_BLOCK] * len(rows)
        data["device"] += [gpu] * len(rows)
    columns = (_TYPE, *_COLUMNS, *((_DEVICE,) if per_gpu else ()))
    return View(columns=columns, data=data, footers=footers, notes=notes, block_key="type")


def _rows(times: dict[str, Times], limit: int | None) -> list[dict[str, Any]]:
    """One dict a name, by total time (then name)."""
    whole = sum(of.total for of in times.values())
    return [
        {
            "percent": 100.0 * of.total / whole if whole else 0.0,
            "time_ns": of.total,
            "calls": of.count,
            "avg_ns": of.total / of.count,
            "min_ns": of.minimum,
            "max_ns": of.maximum,
            "name": name,
        }
        for name, of in sorted(times.items(), key=lambda item: (-item[1].total, item[0]))[:limit]
    ]
