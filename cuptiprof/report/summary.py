"""nvprof's summary: time by kernel and copy kind, and by API function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cuptiprof.report import heading
from cuptiprof.report.activities import NameIds, gpu_work
from cuptiprof.report.aggregate import Int64, group_stats
from cuptiprof.report.model import Column, TableModel
from cuptiprof.report.view import Options, left_out

if TYPE_CHECKING:
    from cuptiprof.result import Result

GPU_BLOCK = "GPU activities"
API_BLOCK = "API calls"

_COLUMNS = (
    Column("block", "Type", "label", min_width=16),
    Column("percent", "Time(%)", "percent", min_width=7),
    Column("time_ns", "Time", "duration", min_width=8),
    Column("calls", "Calls", "count", min_width=8),
    Column("avg_ns", "Avg", "duration", min_width=8),
    Column("min_ns", "Min", "duration", min_width=8),
    Column("max_ns", "Max", "duration", min_width=8),
    Column("name", "Name", "text"),
)
_DEVICE = Column("device", "Device", "id", human=False)


class SummaryView:
    """Rows by total time; percentages are of the block's total."""

    name = "summary"
    help = "time by kernel and by API call, as nvprof prints it"

    def build(self, result: Result, options: Options) -> TableModel:
        work = gpu_work(result, options.demangling)
        duration = work.end - work.start
        blocks: list[tuple[str, int | None, Int64, NameIds]] = []
        if options.per_gpu:
            for device in np.unique(work.device).tolist():
                mine = work.device == device
                name = f"{GPU_BLOCK} (GPU {device})"
                blocks.append((name, device, duration[mine], NameIds(work.name.ids[mine], work.name.names)))
        if not blocks:
            blocks.append((GPU_BLOCK, None, duration, work.name))
        api = result.tables["api_calls"]
        codes = api.codes("name").astype(np.int64)
        blocks.append((API_BLOCK, None, api["end"] - api["start"], NameIds(codes, list(api.strings))))

        data: dict[str, list[Any]] = {column.key: [] for column in (*_COLUMNS, _DEVICE)}
        notes: dict[str, str] = {}
        footers: tuple[str, ...] = ()
        for block, gpu, durations, names in blocks:
            rows, total = _rows(durations, names.ids, names.names, options.limit)
            footers += left_out(total, len(rows), f"rows of {block}")
            if not rows:
                what = "API calls" if block == API_BLOCK else "kernels"
                notes[block] = f"No {what} were recorded."
            for row in rows:
                for key, value in row.items():
                    data[key].append(value)
            data["block"] += [block if gpu is None else GPU_BLOCK] * len(rows)
            data["device"] += [gpu] * len(rows)
        columns = _COLUMNS
        if options.per_gpu:
            data["type"] = [
                block if device is None else f"{block} (GPU {device})"
                for block, device in zip(data["block"], data["device"], strict=True)
            ]
            columns = (
                Column("type", "Type", "label", machine=False, min_width=16),
                Column("block", "Type", "label", human=False),
                _DEVICE,
                *_COLUMNS[1:],
            )
        return TableModel(
            view=self.name,
            title="Profiling result",
            columns=columns,
            data=data,
            preamble=heading.preamble(result, "Profiling result:"),
            footers=footers,
            notes=notes,
            losses=heading.losses(result),
            losses_line=heading.losses_line(result.losses),
            facts=heading.facts(result),
            block_key="type" if options.per_gpu else "block",
            prefix=heading.prefix(result),
        )


def _rows(
    duration: Int64, ids: Int64, names: Sequence[str], limit: int | None
) -> tuple[list[dict[str, Any]], int]:
    """One dict a name, by total time (then name), and how many there were before the limit."""
    stats = group_stats(ids, duration)
    whole = int(stats.total.sum())
    order = sorted(
        range(len(stats.key)), key=lambda i: (-int(stats.total[i]), names[int(stats.key[i])])
    )
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
