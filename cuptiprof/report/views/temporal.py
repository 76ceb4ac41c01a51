"""HTA's temporal breakdown: idle, compute and other time of each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuptiprof.analysis.utilization.temporal_breakdown import temporal_breakdown
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import rank_of, table

_COLUMNS = (
    Column("rank", "Rank", "count"),
    Column("device", "GPU", "count"),
    Column("idle_ns", "Idle", "duration", min_width=8),
    Column("compute_ns", "Compute", "duration", min_width=8),
    Column("non_compute_ns", "Other work", "duration", min_width=8),
    Column("kernel_ns", "First to last", "duration", min_width=8),
    Column("idle_pct", "Idle(%)", "percent", rank=1),
    Column("compute_pct", "Compute(%)", "percent", rank=2),
    Column("non_compute_pct", "Other(%)", "percent", rank=3),
)
_LEGEND = (
    "Compute: at least one kernel computed. Other work: communication, copies and sets, and nothing computed.",
    "Shares are of the time from the start of the first work to the end of the last.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and GPU."""
    del demangle
    rows = []
    for run in (result, *ranks):
        for gpu in temporal_breakdown(run):
            times = {"idle": gpu.idle, "compute": gpu.compute, "non_compute": gpu.non_compute}
            shares = {f"{what}_pct": 100.0 * time / gpu.kernel if gpu.kernel else None for what, time in times.items()}
            row: dict[str, Any] = {"rank": rank_of(run), "device": gpu.device, "kernel_ns": gpu.kernel}
            rows.append({**row, **{f"{what}_ns": time for what, time in times.items()}, **shares})
    return table(result, _COLUMNS, rows, limit=limit, legend=_LEGEND)
