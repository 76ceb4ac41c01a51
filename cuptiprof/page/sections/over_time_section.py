"""What changed over time: utilisation, hardware counters as they were sampled, bandwidth of copies, launches that waited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.step_curves import step_curves
from cuptiprof.analysis.work.copy_bandwidth import copy_bandwidths
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.analysis.work.queue_lengths import queue_lengths
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.page.charts import Chart, DrawnColumn, chart_section, chart_table
from cuptiprof.page.section import Section
from cuptiprof.report import make_report
from cuptiprof.report.model import Column, Kind, Report

MOST_BINS = 500
"""of samples, and of changes of a curve"""
_PEAKS = f"There were more changes: each value is the largest in one of {MOST_BINS} equal stretches of time."
_SUMMARY = "How busy the GPUs were, and what they did, from the first activity to the last."

_Made = Iterator[tuple[Report, list[Chart]]]
_Curves = dict[int, dict[str, tuple[Int64, list[Array]]]]
"""by GPU and name"""


def over_time(result: Result) -> Section | None:
    """None where nothing ran and nothing was sampled."""
    tables: list[Report] = []
    charts: list[Chart] = []
    for make in (_gpu, _samples, _bandwidth, _queues):
        for table, of in make(result, len(tables)):
            tables.append(table)
            charts += of
    return chart_section("over-time", "Over time", _SUMMARY, tables, charts) if charts else None


def _gpu(result: Result, table: int) -> _Made:
    report = make_report(result, "gpu-series")
    data, charts = report.content.data, []
    for device in dict.fromkeys(data["device"]):
        series = [DrawnColumn("utilisation_pct", "Any kernel ran", "steps")]
        if any(
            of == device and value is not None
            for of, value in zip(data["device"], data["sm_efficiency_pct"], strict=True)
        ):
            series.append(DrawnColumn("sm_efficiency_pct", "Est. SM efficiency", "steps"))
        title = f"GPU {device}: utilisation"
        charts.append(Chart(title, "start_ns", "Time", "Share", "percent", series, table, {"device": device}, high=100))  # fmt: skip
    if charts:
        yield report, charts


def _samples(result: Result, table: int) -> _Made:
    report = make_report(result, "samples", limit=MOST_BINS)
    view, charts = report.content, []
    for device, label in dict(zip(view.data["device_ordinal"], view.data["device"], strict=True)).items():
        for column in view.columns:
            if column.kind == "metric":
                series, where = [DrawnColumn(column.key, column.title, "steps")], {"device_ordinal": device}
                unit = column.unit or "Value"
                charts.append(
                    Chart(f"{label}: {column.title}", "start_ns", "Time", unit, "metric", series, table, where)
                )
    if charts:
        yield report, charts


def _bandwidth(result: Result, table: int) -> _Made:
    curves: _Curves = {}
    for found in copy_bandwidths(result):
        if found.points is not None:
            curves.setdefault(found.device, {})[found.kind] = (found.time, [found.rate])
    yield from _curves(result, table, curves, "bandwidth of copies and sets", "Bandwidth", "byte_rate")


def _queues(result: Result, table: int) -> _Made:
    curves: _Curves = {}
    for found in queue_lengths(result):
        curves.setdefault(found.device, {})[f"Stream {found.stream}"] = (found.time, [found.length])
    yield from _curves(result, table, curves, "launches that wait", "In queue", "count")


def _curves(
    result: Result, table: int, curves: Mapping[int, Mapping[str, Any]], what: str, y: str, kind: Kind
) -> _Made:
    origin = origin_ns(result)
    for place, (device, of) in enumerate(curves.items()):
        found = step_curves(list(of.values()), MOST_BINS)
        keys = {f"curve{i}": name for i, name in enumerate(of)}
        columns = [Column("time_ns", "Time", "instant"), *(Column(key, name, kind) for key, name in keys.items())]
        title = f"GPU {device}: {what}"
        data: dict[str, Any] = {"time_ns": found.time - origin, **dict(zip(keys, found.values, strict=True))}
        series = [DrawnColumn(key, name, "steps") for key, name in keys.items()]
        chart = Chart(title, "time_ns", "Time", y, kind, series, table + place)
        yield chart_table("over-time", title, columns, data, (_PEAKS,) if found.is_peak else ()), [chart]
