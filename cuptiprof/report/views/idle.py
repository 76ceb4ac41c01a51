"""HTA's idle time breakdown: why each stream was idle."""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof.analysis.utilization.idle_causes import CONSECUTIVE_NS, idle_causes
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import rank_of, table

_COLUMNS = (
    Column("rank", "Rank", "count"),
    Column("device", "GPU", "count"),
    Column("stream", "Stream", "count"),
    Column("idle_category", "Cause", "label"),
    Column("idle_ns", "Idle", "duration", min_width=8),
    Column("idle_ratio", "Share", "metric", human=False),
    Column("idle_pct", "Of idle(%)", "percent", machine=False),
    Column("sync_ns", "Host in sync", "duration", min_width=8),
    Column("gaps", "Gaps", "count", rank=1),
)
_LEGEND = (
    "host_wait: launched only after the work before it had ended. "
    f"kernel_wait: launched in time, less than {CONSECUTIVE_NS // 1000} us. other: all else.",
    "Host in sync: a thread waited for the GPU meanwhile (cudaStreamSynchronize and the like).",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank, stream and cause."""
    del demangle
    rows, unknown, gaps = [], 0, 0
    for run in (result, *ranks):
        for cause in idle_causes(run):
            unknown, gaps = unknown + cause.unknown, gaps + cause.gaps
            rows.append({
                "rank": rank_of(run), "device": cause.device, "stream": cause.stream, "idle_category": cause.category,
                "idle_ns": cause.idle, "idle_ratio": cause.ratio, "sync_ns": cause.sync, "gaps": cause.gaps,
                "idle_pct": None if cause.ratio is None else 100.0 * cause.ratio,
            })  # fmt: skip
    unsure = (
        (f"Of {unknown:,} of {gaps:,} gaps the launch was not recorded: none of them is host_wait.",) if unknown else ()
    )
    return table(result, _COLUMNS, rows, limit=limit, legend=(*unsure, *_LEGEND), facts={"unknown_launches": unknown})
