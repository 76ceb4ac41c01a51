"""HTA's launch statistics: one row a launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuptiprof.analysis.work.launch_statistics import DELAY_OUTLIER_NS, RUNTIME_OUTLIER_NS, launches
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import Columns, column_table, rank_of

_COLUMNS = (
    Column("rank", "Rank", "count", rank=2),
    Column("correlation", "Correlation", "count"),
    Column("device", "GPU", "count", rank=3),
    Column("stream", "Stream", "count", rank=1),
    Column("cpu_duration_ns", "Call", "duration", min_width=8),
    Column("gpu_duration_ns", "GPU", "duration", min_width=8),
    Column("launch_delay_ns", "Delay", "duration", min_width=8),
    Column("name", "Name", "text"),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a launch, those that waited longest first; below how many are short, slow to launch or late."""
    del demangle
    columns = Columns(_COLUMNS)
    facts = {"launches": 0, "short_kernels": 0, "runtime_outliers": 0, "delay_outliers": 0}
    for run in (result, *ranks):
        found, api = launches(run), run.api_calls
        facts = {key: facts[key] + value for key, value in found.summary().items()}
        rows = np.argsort(-found.delay, kind="stable")[:limit]
        call = found.call[rows]
        columns.add(
            len(rows),
            rank=rank_of(run), correlation=api["correlation_id"][call], device=found.device[rows], stream=found.stream[rows],
            cpu_duration_ns=found.cpu[rows], gpu_duration_ns=found.gpu[rows], launch_delay_ns=found.delay[rows],
            name=[api.strings[code] for code in api.codes("name")[call].tolist()],
        )  # fmt: skip
    legend = (
        f"{facts['launches']:,} launches; {facts['short_kernels']:,} ran shorter than their call took; of "
        f"{facts['runtime_outliers']:,} the call took more than {RUNTIME_OUTLIER_NS // 1000} us; "
        f"{facts['delay_outliers']:,} began more than {DELAY_OUTLIER_NS // 1000} us after it.",
        "Delay: from the end of the call to the start of the work, 0 if it began before.",
    )
    return column_table(result, columns, facts["launches"], limit, "launches", legend, facts)
