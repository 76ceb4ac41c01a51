"""Memory over time: of PyTorch's caching allocator, and by the records of CUDA's own calls."""

from __future__ import annotations

from typing import Any

from cuptiprof.analysis.allocators.allocations import allocations
from cuptiprof.analysis.allocators.allocator_memory import devices, memory_timeline
from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.step_curves import step_curves
from cuptiprof.analysis.work.counted import device_label, device_labels
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.enums import MEMORY_KINDS
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.page.charts import Chart, DrawnColumn, chart_section, chart_table
from cuptiprof.page.section import Section
from cuptiprof.report.model import Column, Report

MOST_POINTS = 2000
"""of a curve; of more changes the largest value of each stretch of time is shown"""
_PEAKS = f"There were more changes: each value is the largest in one of {MOST_POINTS:,} equal stretches of time."


def memory(result: Result) -> Section | None:
    """A chart for each GPU and allocator that told something; None: there is none."""
    origin, labels = origin_ns(result), device_labels(result)
    tables: list[Report] = []
    charts: list[Chart] = []

    def add(device: int, what: str, names: dict[str, str], curves: list[tuple[Int64, list[Array]]]) -> None:
        title = f"{device_label(labels, device)}: {what}"
        found = step_curves(curves, MOST_POINTS)
        columns = [Column("time_ns", "Time", "instant"), *(Column(key, name, "bytes") for key, name in names.items())]
        data: dict[str, Any] = {"time_ns": found.time - origin, **dict(zip(names, found.values, strict=True))}
        series = [DrawnColumn(key, name, "steps") for key, name in names.items()]
        charts.append(Chart(title, "time_ns", "Time", "Memory", "bytes", series, table=len(tables)))
        tables.append(chart_table("memory-curve", title, columns, data, (_PEAKS,) if found.is_peak else ()))

    for device in devices(result):
        timeline = memory_timeline(result, device)
        if len(timeline.time):
            names = {"reserved_bytes": "Reserved", "allocated_bytes": "Allocated"}
            add(
                device,
                "PyTorch's caching allocator",
                names,
                [(timeline.time, [timeline.reserved, timeline.allocated])],
            )
    pools: dict[int, list[tuple[str, tuple[Int64, Int64]]]] = {}
    for device, kind, pool in allocations(result.memory).pools():
        pools.setdefault(device, []).append((MEMORY_KINDS.get(kind, "Unknown"), pool.levels()))
    for device, of_kind in pools.items():
        names = {f"kind{i}_bytes": name for i, (name, _) in enumerate(of_kind)}
        add(device, "allocated by calls of CUDA", names, [(time, [level]) for _, (time, level) in of_kind])
    if not charts:
        return None
    return chart_section("memory-curve", "Memory over time", "Bytes in use from each moment on.", tables, charts)
