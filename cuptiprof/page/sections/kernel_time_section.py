"""How long kernels took: a histogram."""

from __future__ import annotations

from cuptiprof.analysis.work.duration_histogram import duration_histogram
from cuptiprof.data.result import Result
from cuptiprof.page.charts import Chart, DrawnColumn, TableData, chart_section, chart_table
from cuptiprof.page.section import Section
from cuptiprof.report.model import Column
from cuptiprof.text.units import UNITS, ns_per

_COLUMNS = (
    Column("took", "A kernel took", "label"),
    Column("launches", "Launches", "count"),
    Column("launches_pct", "Launches(%)", "percent"),
    Column("time_ns", "Time", "duration"),
    Column("time_pct", "Time(%)", "percent"),
)
_SUMMARY = "Many short kernels are launches to save; where most of the time is, a faster kernel pays."
_TITLE = "Launches and time by the duration of a kernel"


def kernel_times(result: Result) -> Section | None:
    """None without kernels."""
    found = duration_histogram(result)
    if not len(found.low):
        return None
    ends = zip(found.low.tolist(), found.high.tolist(), strict=True)
    data: TableData = {
        "took": [f"{_edge(low)}\N{EN DASH}{_edge(high)}" for low, high in ends],
        "launches": found.launches,
        "launches_pct": 100.0 * found.launches / int(found.launches.sum()),
        "time_ns": found.time,
        "time_pct": 100.0 * found.time / max(int(found.time.sum()), 1),
    }
    shares = [DrawnColumn("launches_pct", "of launches", "bars"), DrawnColumn("time_pct", "of kernel time", "points")]
    chart = Chart(_TITLE, "took", "A kernel took", "Share", "percent", shares)
    table = chart_table("kernel-times", "Kernel durations", _COLUMNS, data)
    return chart_section("kernel-times", "Kernel durations", _SUMMARY, [table], [chart])


def _edge(ns: int) -> str:
    """An end of a bin: a 1, 2 or 5 with zeros."""
    unit = next(unit for unit in reversed(UNITS[1:]) if ns < 1000 * ns_per(unit) or unit == "s")
    return f"{ns / ns_per(unit):g}{unit}"
