"""How long each training step took, and which of them stand out."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.training_steps.step_breakdown import step_breakdown
from cuptiprof.analysis.training_steps.step_outliers import step_outliers
from cuptiprof.data.result import Result
from cuptiprof.page.charts import Chart, DrawnColumn, TableData, chart_section, chart_table
from cuptiprof.page.section import Section
from cuptiprof.report.model import Column
from cuptiprof.text.units import format_time

_COLUMNS = (
    Column("step", "Step", "label"),
    Column("total_ns", "Total", "duration"),
    Column("outlier_ns", "Stands out", "duration"),
    Column("kernel_ns", "Kernels", "duration"),
)
_SERIES = (
    DrawnColumn("total_ns", "Total", "bars"),
    DrawnColumn("kernel_ns", "Kernels", "line"),
    DrawnColumn("outlier_ns", "Stands out", "points"),
)
_LEGEND = "Stands out: beyond Tukey's outer fence and 1.5 times the median, of five steps or more."


def step_times(result: Result) -> Section | None:
    """None with fewer than two steps."""
    found = step_breakdown(result)
    if len(found.steps) < 2:
        return None
    outliers, median = step_outliers(found.total)
    standing = np.full(len(found.steps), np.nan)
    standing[outliers] = found.total[outliers]
    data: TableData = {
        "step": found.steps.name,
        "total_ns": found.total,
        "outlier_ns": standing,
        "kernel_ns": found.roles["kernel"],
    }
    said = f"{len(outliers):,} of {len(found.steps):,} steps stand out; the median is {format_time(median, 'auto')}."
    chart = Chart("Time of each step", "step", "Step", "Time", "duration", _SERIES)
    table = chart_table("step-times", "Step times", _COLUMNS, data, (_LEGEND,))
    return chart_section("step-times", "Step times", said, [table], [chart])
