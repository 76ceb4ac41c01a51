"""Communication across ranks: the time of the data, and the time that ranks wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuptiprof.analysis.collectives.communication_waits import communication_waits
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import rank_of, table

_COLUMNS = (
    Column("rank", "Rank", "count"),
    Column("device", "GPU", "count"),
    Column("communication_ns", "Communication", "duration", min_width=8),
    Column("transfer_ns", "Data transfer", "duration", min_width=8),
    Column("synchronising_ns", "Synchronising", "duration", min_width=8),
    Column("synchronising_pct", "Sync(%)", "percent"),
    Column("kernels", "Kernels", "count", rank=2),
    Column("paired", "Paired", "count", rank=1),
)
_LEGEND = (
    "Data transfer: the shortest of a kernel and its partners on the other ranks. Synchronising: the rest of its time, waiting for them.",
    "Paired: kernels with a partner; the others are in neither.",
)
_ALONE = "What a rank waited for others takes their runs too: a folder of all ranks, or report(ranks=...)."


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and GPU that communicated."""
    del demangle
    runs = [result, *ranks]
    rows: list[dict[str, Any]] = []
    for run, found in zip(runs, communication_waits(runs), strict=True):
        for gpu in found:
            both = None if gpu.transfer is None or gpu.synchronising is None else gpu.transfer + gpu.synchronising
            rows.append({
                "rank": rank_of(run), "device": gpu.device, "kernels": gpu.kernels, "paired": gpu.paired,
                "communication_ns": gpu.communication, "transfer_ns": gpu.transfer, "synchronising_ns": gpu.synchronising,
                "synchronising_pct": 100.0 * gpu.synchronising / both if both and gpu.synchronising is not None else None,
            })  # fmt: skip
    legend = _LEGEND if ranks else (_ALONE,)
    return table(result, _COLUMNS, rows, limit=limit, what="kernels that communicate", legend=legend)
