"""The step time breakdown of TensorBoard's plugin: what the time of each training step went to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuptiprof.analysis.training_steps.step_breakdown import step_breakdown
from cuptiprof.analysis.training_steps.step_clocks import step_clocks
from cuptiprof.analysis.training_steps.step_spans import StepSpans
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import Columns, column_table, rank_of
from cuptiprof.text.units import format_percent, format_time

_TITLES = {
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "communication": "Communication",
    "runtime": "Runtime",
    "dataloader": "DataLoader",
    "cpu_exec": "CPU Exec",
    "other": "Other",
}
_RANKS = {"memset": 5, "memcpy": 3, "runtime": 2, "cpu_exec": 1}
_COLUMNS = (
    Column("rank", "Rank", "count", rank=4),
    Column("step", "Step", "label", may_cut=True),
    Column("total_ns", "Total", "duration", min_width=8),
    *(Column(f"{role}_ns", title, "duration", rank=_RANKS.get(role, 0)) for role, title in _TITLES.items()),
    Column("all_communication_ns", "All communication", "duration", human=False),
    Column("overlap_ns", "Hidden communication", "duration", human=False),
)
_OF_SYSTEM = (
    Column("of_median", "Of median", "metric", human=False),
    Column("held_pct", "Held", "percent", human=False),
    Column("clock_pct", "SM Clock", "percent", human=False),
    Column("remark", "Remark", "text"),
)
"""Where the system was read."""
_LEGEND = "A moment counts for the first of these that goes on. CPU Exec: operators and regions. Communication: what no kernel hides."


def _system(run: Result, steps: StepSpans) -> dict[str, Any]:
    """What befell the GPUs in each step; None: they were not read."""
    found = step_clocks(run, steps)
    if found is None:
        return dict.fromkeys((column.key for column in _OF_SYSTEM), None) | {"remark": ""}
    return {
        "of_median": found.of_median,
        "held_pct": 100 * np.max([*found.held.values(), np.zeros(len(steps))], axis=0),
        "clock_pct": 100 * found.clock,
        "remark": [found.remark(step) for step in range(len(steps))],
    }


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and step; below the average step."""
    del demangle
    read = any(len(run.system_samples) for run in (result, *ranks))
    columns, steps = Columns((*_COLUMNS, *_OF_SYSTEM) if read else _COLUMNS), 0
    sums = dict.fromkeys(("total", *_TITLES), 0)
    for run in (result, *ranks):
        found = step_breakdown(run)
        times = {"total": found.total, **found.roles}
        steps += len(found.steps)
        sums = {name: sums[name] + int(np.sum(times[name])) for name in sums}
        columns.add(
            len(found.steps),
            rank=rank_of(run), step=found.steps.name, all_communication_ns=found.communication, overlap_ns=found.overlap,
            **{f"{name}_ns": time for name, time in times.items()}, **(_system(run, found.steps) if read else {}),
        )  # fmt: skip
    average = {f"{name}_ns": time / steps for name, time in sums.items()} if steps else {}
    footers: tuple[str, ...] = ()
    if steps:
        whole = max(sums["total"], 1)
        shares = ", ".join(f"{title} {format_percent(100 * sums[role] / whole)}" for role, title in _TITLES.items())
        footers = (f"Average step: {format_time(average['total_ns'], 'auto')}; {shares}.", _LEGEND)
    return column_table(result, columns, steps, limit, "steps", footers, {"average": average})
