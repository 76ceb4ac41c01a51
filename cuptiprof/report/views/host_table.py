"""What the host did while no GPU worked, by function: samples of ``perf`` beside the run."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.utilization.host_functions import host_functions
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out
from cuptiprof.text.names import printable
from cuptiprof.text.units import format_time

_FUNCTIONS = 25
"""rows that are shown"""

_COLUMNS = (
    Column("self_idle_percent", "Of idle", "percent", min_width=7),
    Column("idle_ns", "Idle time", "duration", min_width=9),
    Column("total_idle_percent", "With calls", "percent", min_width=10),
    Column("self_busy_percent", "Of busy", "percent", min_width=7, rank=1),
    Column("total_busy_percent", "With calls", "percent", min_width=10, rank=2),
    Column("self_idle", "Samples idle", "count", human=False),
    Column("self_busy", "Samples busy", "count", human=False),
    Column("function", "Function", "text", may_cut=True, is_function=True),
)
_NONE = "No samples of the host are recorded with a run: perf takes them, and cuptiprof report RUN --host-samples FILE puts them beside it."


def view(
    result: Result,
    *,
    demangle: bool = True,
    limit: int | None = None,
) -> View:
    """One row a function of the host, by its samples while no GPU worked (``Result.with_host_samples``)."""
    del demangle  # perf did
    samples = result.host_samples
    if samples is None:
        return View(_COLUMNS, {column.key: [] for column in _COLUMNS}, notes={"": _NONE})
    found = host_functions(result, samples)
    order = np.lexsort((-found.total_busy, -found.total_idle, -found.self_idle))
    shown = order[: _FUNCTIONS if limit is None else limit]
    idle, busy = max(found.idle, 1), max(found.busy, 1)
    data = {
        "self_idle_percent": (100 * found.self_idle[shown] / idle).tolist(),
        "idle_ns": (found.idle_ns * found.self_idle[shown] / idle).tolist(),
        "total_idle_percent": (100 * found.total_idle[shown] / idle).tolist(),
        "self_busy_percent": (100 * found.self_busy[shown] / busy).tolist(),
        "total_busy_percent": (100 * found.total_busy[shown] / busy).tolist(),
        "self_idle": found.self_idle[shown].tolist(),
        "self_busy": found.self_busy[shown].tolist(),
        "function": [printable(found.function[i]) for i in shown.tolist()],
    }
    said = [
        f"{found.idle + found.busy:,} samples: {found.idle:,} while no GPU worked ({format_time(found.idle_ns)}), {found.busy:,} while one did "
        f"({format_time(found.busy_ns)}). Of idle, of busy: share of those; idle time: that share of the time; with calls: in what it called, too.",
        "perf counts threads that run: a host that waits has no samples.",
    ]
    if found.elsewhere or found.others or samples.skipped:
        said.append(
            f"Not counted: {found.elsewhere:,} samples outside of the GPUs' work, {found.others:,} of other processes; {samples.skipped:,} lines were none of a sample."
        )
    return View(_COLUMNS, data, footers=(*left_out(len(order), len(shown), "functions"), *said))
