"""Utilisation and SM efficiency of each GPU over time, as TensorBoard's plugin draws them."""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof.analysis.utilization.gpu_series import gpu_series
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import Columns, column_table, rank_of

_COLUMNS = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("rank", "Rank", "count"),
    Column("device", "GPU", "count"),
    Column("utilisation_pct", "Utilisation", "percent"),
    Column("sm_efficiency_pct", "Est. SM eff.", "percent"),
)
_LEGEND = ("Utilisation: time in which any kernel ran. Est. SM eff.: SMs that had a block, by the sizes of the grids.",)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank, GPU and stretch of time: a power of ten microseconds, at most 100 of them."""
    del demangle
    columns, total, origin = Columns(_COLUMNS), 0, origin_ns(result)
    for run in (result, *ranks):
        for gpu in gpu_series(run):
            total += len(gpu.start)
            columns.add(
                len(gpu.start[:limit]),
                rank=rank_of(run), device=gpu.device,
                start_ns=gpu.start[:limit] - origin, duration_ns=(gpu.end - gpu.start)[:limit],
                utilisation_pct=100 * gpu.utilisation[:limit],
                sm_efficiency_pct=None if gpu.sm_efficiency is None else 100 * gpu.sm_efficiency[:limit],
            )  # fmt: skip
    return column_table(result, columns, total, limit, "kernels", _LEGEND, {"origin_ns": origin})
