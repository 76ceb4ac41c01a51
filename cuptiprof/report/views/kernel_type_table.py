"""HTA's kernel type breakdown: computation, communication, memory, and what of it ran at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cuptiprof.analysis.utilization.kernel_types import kernel_types
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import table

_COLUMNS = (
    Column("percentage", "Time(%)", "percent", min_width=7),
    Column("sum_ns", "Time", "duration", min_width=8),
    Column("kernel_type", "Type", "text"),
)
_LEGEND = ("Each moment counts for all types that ran in it; times of all GPUs and ranks are added up.",)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a kernel type or several at once, the longest first."""
    del demangle
    total: Counter[str] = Counter()
    for run in (result, *ranks):
        total.update(kernel_types(run))
    whole = total.total()
    rows = [
        {"kernel_type": name, "sum_ns": time, "percentage": 100.0 * time / whole}
        for name, time in sorted(total.items(), key=lambda item: (-item[1], item[0]))
    ]
    return table(result, _COLUMNS, rows, limit=limit, legend=_LEGEND)
