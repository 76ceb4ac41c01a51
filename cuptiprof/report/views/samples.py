"""The timeline of PM samples: what the whole device did, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.counted import device_label, device_labels, units
from cuptiprof.analysis.gpu_work import origin_ns
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out

_FIXED = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("device", "Device", "label"),
    Column("device_ordinal", "Device", "count", human=False),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a sample by time, one column a metric. Instants are relative to the first activity, as in the traces."""
    ranges, counters = result.metric_ranges, result.counters
    every = np.flatnonzero(ranges["kind"] == SAMPLE)
    every = every[np.lexsort((ranges["device"][every], ranges["start"][every]))]
    rows = every[:limit]
    start, device = ranges["start"][rows], ranges["device"][rows].tolist()
    labels, origin = device_labels(result), origin_ns(result)
    data: dict[str, Any] = {
        "start_ns": (start - origin).tolist(),
        "duration_ns": (ranges["end"][rows] - start).tolist(),
        "device": [device_label(labels, ordinal) for ordinal in device],
        "device_ordinal": device,
    }
    metrics = []
    unit_of = units(result)
    for metric in counters:
        values = counters[metric][every]
        if not np.isnan(values).all():
            key = metric if metric not in data else f"metric {metric}"
            metrics.append(Column(key, metric, "metric", unit=unit_of[metric]))
            data[key] = values[: len(rows)].tolist()
    footers = left_out(len(every), len(rows), "samples")
    if len(rows):
        footers += ("A sample is of the whole device: of all streams, and of other programs on it too.",)
    return View(
        columns=(*_FIXED, *metrics),
        data=data,
        footers=footers,
        notes={"": "No PM samples were recorded."},
        facts={"origin_ns": origin, "total_rows": len(every), "units": {c.key: c.unit for c in metrics}},
    )
