"""How full kernels could make the SMs: occupancy by launches, by their time, and by kernel."""

from __future__ import annotations

from cuptiprof.analysis.utilization.occupancy_spread import WIDTH, occupancy_spread
from cuptiprof.data.result import Result
from cuptiprof.page.charts import Chart, DrawnColumn, TableData, chart_section, chart_table
from cuptiprof.page.section import Section
from cuptiprof.report.model import Column

_COLUMNS = (
    Column("occupancy", "Est. occupancy", "label"),
    Column("time_pct", "Time(%)", "percent"),
    Column("time_ns", "Time", "duration"),
    Column("launches_pct", "Launches(%)", "percent"),
    Column("launches", "Launches", "count"),
    Column("kernels", "Kernels", "count"),
)
_SUMMARY = (
    "How many of the warps that the SMs can hold kernels could have there, estimated from how they were launched."
)
_LEGEND = "Est. occupancy: what a launch allows, of that what its blocks fill. Kernels: names, by their mean weighted by time."
_TITLE = "Kernel time and launches by estimated occupancy"


def occupancy(result: Result) -> Section | None:
    """None where the chip is not known."""
    found = occupancy_spread(result)
    if found is None:
        return None
    unknown = (f"Of {found.unknown:,} launches it is not known.",) if found.unknown else ()
    data: TableData = {
        "occupancy": [f"{low}\N{EN DASH}{low + WIDTH}%" for low in found.low.tolist()],
        "time_pct": 100.0 * found.time / max(int(found.time.sum()), 1),
        "time_ns": found.time,
        "launches_pct": 100.0 * found.launches / max(int(found.launches.sum()), 1),
        "launches": found.launches,
        "kernels": found.kernels,
    }
    shares = [DrawnColumn("time_pct", "of kernel time", "bars"), DrawnColumn("launches_pct", "of launches", "points")]
    names = [DrawnColumn("kernels", "Kernels", "bars")]
    charts = [
        Chart(_TITLE, "occupancy", "Estimated occupancy", "Share", "percent", shares),
        Chart("Kernels by estimated occupancy", "occupancy", "Mean by time", "Kernels", "count", names),
    ]
    table = chart_table("occupancy", "Estimated occupancy", _COLUMNS, data, (*unknown, _LEGEND))
    return chart_section("occupancy", "Occupancy", _SUMMARY, [table], charts)
