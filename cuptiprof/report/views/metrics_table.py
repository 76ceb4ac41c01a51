"""Counters as they are: wide, one row a piece of work, and long, one row a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import finite
from cuptiprof.analysis.work.counted import (
    NOTHING,
    device_label,
    device_labels,
    dims,
    kind_names,
    range_names,
    texts,
    units,
)
from cuptiprof.data.enums import SAMPLE, STRATEGIES
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out

_WORK = (
    Column("id", "Range", "count", human=False),
    Column("kind", "Kind", "label", human=False),
    Column("device", "Device", "count", human=False),
    Column("device_name", "Device", "label", human=False),
    Column("correlation", "Correlation", "count", human=False),
    Column("start_ns", "Start", "instant", human=False),
)
_NAME = Column("name", "Name", "text", is_function=True)
_REGION = Column("region", "Region", "text", rank=1)
_SIZES = (Column("grid", "Grid Size", "dims", rank=1000), Column("block", "Block Size", "dims", rank=1001))
_LONG = (
    Column("metric", "Metric", "label", may_cut=True),
    Column("value", "Value", "metric", unit_key="unit"),
    Column("min", "Min", "metric", unit_key="unit", rank=5),
    Column("max", "Max", "metric", unit_key="unit", rank=4),
    Column("spread", "Spread", "metric", unit_key="unit", rank=3),
    Column("count", "Count", "count", rank=6),
    Column("unit", "Unit", "label", rank=2),
    Column("group", "Group", "count", rank=8),
    Column("from_means", "From means", "label", human=False),
    Column("strategy", "Strategy", "label", rank=7),
)


def wide(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a launch, kernel or region that was measured, one column a metric; samples have a view of their own."""
    ranges, counters = result.metric_ranges, result.counters
    every = np.flatnonzero(ranges["kind"] != SAMPLE)
    rows = every[:limit]
    occurrences = Column("occurrences", "Launches", "count", human=bool((ranges["occurrences"][rows] > 1).any()))
    data: dict[str, Any] = _work(result, rows, demangle) | {
        "grid": dims(ranges, "grid", rows),
        "block": dims(ranges, "block", rows),
        "occurrences": ranges["occurrences"][rows].tolist(),
    }
    fixed = (*_WORK, _NAME, _region_column(data), *_SIZES, occurrences)
    metrics: list[Column] = []
    for metric, unit in units(result).items():
        key = metric if metric not in data else f"metric {metric}"  # a metric called "name" is still a metric
        metrics.append(Column(key, metric, "metric", unit=unit, rank=2 + len(metrics)))
        data[key] = counters[metric][rows].tolist()
    return View(
        columns=(*fixed, *metrics),
        data=data,
        footers=left_out(len(every), len(rows)),
        notes={"": NOTHING},
        facts={"units": units(result), "total_rows": len(every)},
    )


def long(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a (range, metric): value, min, max, spread, count, unit, pass group, strategy. Ranges in order, samples too."""
    ranges, table, counters = result.metric_ranges, result.metrics, result.counters
    names = list(counters)
    parts = [counters.rows_of(name) for name in names]
    none = np.zeros(0, np.int64)
    value_row = np.concatenate([none, *(rows for rows, _ in parts)])
    range_row = np.concatenate([none, *(where for _, where in parts)])
    which = np.repeat(np.arange(len(names)), [len(rows) for rows, _ in parts])
    order = np.lexsort((which, range_row))[:limit]
    rows, work, shown = value_row[order], range_row[order], which[order].tolist()
    unit_of = units(result)
    each = [unit_of[name] for name in names]
    data: dict[str, Any] = _work(result, work, demangle) | {
        "metric": [names[i] for i in shown],
        "unit": [each[i] for i in shown],
        **{key: finite(table[key][rows]).tolist() for key in ("value", "min", "max", "spread")},
        "count": table["count"][rows].tolist(),
        "group": table["group"][rows].tolist(),
        "from_means": np.where(table["from_means"][rows] != 0, "yes", "no").tolist(),
        "strategy": [STRATEGIES.get(code, "unknown") for code in ranges["strategy"][work].tolist()],
    }
    computed = bool((table["from_means"][rows] != 0).any())
    legend = ("Group 0: computed from the means of values that were read in different passes.",) if computed else ()
    return View(
        columns=(*_WORK, _NAME, _region_column(data), *_LONG),
        data=data,
        footers=(*left_out(len(value_row), len(order)), *legend),
        notes={"": NOTHING},
        facts={"total_rows": len(value_row)},
    )


def _work(result: Result, rows: Any, demangle: bool) -> dict[str, Any]:
    ranges = result.metric_ranges
    names, labels = range_names(ranges, demangle), device_labels(result)
    device = ranges["device"][rows].tolist()
    return {
        "id": ranges["id"][rows].tolist(),
        "kind": kind_names(ranges["kind"][rows]),
        "device": device,
        "device_name": [device_label(labels, ordinal) for ordinal in device],
        "correlation": ranges["correlation_id"][rows].tolist(),
        "start_ns": ranges["start"][rows].tolist(),
        "name": [names.names[i] or None for i in names.ids[rows].tolist()],
        "region": texts(ranges, "region", rows),
    }


def _region_column(data: dict[str, Any]) -> Column:
    return _REGION if any(data["region"]) else Column("region", "Region", "text", human=False)
