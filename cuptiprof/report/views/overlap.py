"""HTA's communication/computation overlap: what of the communication was hidden."""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof.analysis.utilization.comm_overlap import comm_overlap
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import rank_of, table

_COLUMNS = (
    Column("rank", "Rank", "count"),
    Column("device", "GPU", "count"),
    Column("comp_comm_overlap_pct", "Hidden(%)", "percent"),
    Column("overlap_ns", "Overlap", "duration", min_width=8),
    Column("communication_ns", "Communication", "duration", min_width=8),
    Column("computation_ns", "Computation", "duration", min_width=8, rank=1),
)
_LEGEND = ("Hidden: part of the time of communication in which something was computed as well.",)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and GPU; without communication there is no percentage."""
    del demangle
    rows = [
        {
            "rank": rank_of(run),
            "device": gpu.device,
            "comp_comm_overlap_pct": gpu.percent,
            "overlap_ns": gpu.overlap,
            "communication_ns": gpu.communication,
            "computation_ns": gpu.computation,
        }
        for run in (result, *ranks)
        for gpu in comm_overlap(run)
    ]
    return table(result, _COLUMNS, rows, limit=limit, legend=_LEGEND)
