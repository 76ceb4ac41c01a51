"""The timeline of PM samples: what the whole device did, in as many rows as one looks at."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.counted import device_label, device_labels, units
from cuptiprof.analysis.gpu_work import origin_ns
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.report.model import Column, View
from cuptiprof.text.metric_units import form_of
from cuptiprof.text.units import format_time

_BINS = 50  # rows a device where no limit says otherwise

_FIXED = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("samples", "Samples", "count", rank=2),
    Column("device", "Device", "label", rank=1),
    Column("device_ordinal", "Device", "count", human=False),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a stretch of time (a bin of samples), one column a metric; at most ``limit`` bins a device, ``_BINS`` if None.

    A metric is the mean over the samples of a bin, weighted by their length; one that counts is their sum. Instants are
    relative to the first activity, as in the traces. Sampling begins with the session, often long before the program's first
    call of CUDA: samples from before the first and after the last activity are left out, and counted.
    """
    ranges, counters = result.metric_ranges, result.counters
    every = np.flatnonzero(ranges["kind"] == SAMPLE)
    every = every[np.lexsort((ranges["start"][every], ranges["device"][every]))]
    start, end = ranges["start"][every], ranges["end"][every]
    first, last = _activity(result)
    early, late = end <= first, start >= last
    inside = ~(early | late)
    if not inside.any():  # nothing ran: then the idle device is all there is to show
        inside[:], early[:], late[:] = True, False, False
    if limit == 0:
        inside[:] = False
    rows, start, end = every[inside], start[inside], end[inside]
    device = ranges["device"][rows]
    bins = _bins(device, start, _BINS if limit is None else limit)
    at = np.flatnonzero(np.r_[True, bins[1:] != bins[:-1]][: len(bins)])
    labels, origin = device_labels(result), origin_ns(result)
    data: dict[str, Any] = {
        "start_ns": (start[at] - origin).tolist(),
        "duration_ns": (np.maximum.reduceat(end, at) - start[at]).tolist() if len(at) else [],
        "samples": np.diff(np.r_[at, len(rows)]).tolist(),
        "device": [device_label(labels, ordinal) for ordinal in device[at].tolist()],
        "device_ordinal": device[at].tolist(),
    }
    metrics: list[Column] = []
    unit_of = units(result)
    for metric in counters:
        values = counters[metric][rows]
        if not np.isnan(counters[metric][every]).all():
            key = metric if metric not in data else f"metric {metric}"
            metrics.append(Column(key, metric, "metric", unit=unit_of[metric], rank=3 + len(metrics)))
            data[key] = _binned(values, end - start, at, form_of(unit_of[metric]) == "count").tolist()
    return View(
        columns=(*_FIXED, *metrics),
        data=data,
        footers=_footers(len(rows), len(at), int(early.sum()), int(late.sum()), every, ranges["start"], first),
        notes={"": "No PM samples were recorded."},
        facts={"origin_ns": origin, "total_rows": len(every), "units": {c.key: c.unit for c in metrics}},
    )


def _activity(result: Result) -> tuple[int, int]:
    """From the first to the last GPU activity or API call, ns; everything where there was none."""
    tables = [t for n in ("kernels", "memcpys", "memsets", "api_calls") if len(t := result.tables[n].timed())]
    if not tables:
        return np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return min(int(t["start"].min()) for t in tables), max(int(t["end"].max()) for t in tables)


def _bins(device: Array, start: Array, count: int) -> Array:
    """Number of each sample's bin, rising: equal stretches of time of each device. Samples are sorted by both."""
    out = np.zeros(len(start), np.int64)
    before = 0
    for ordinal in np.unique(device).tolist():
        mine = np.flatnonzero(device == ordinal)
        if len(mine) <= count:
            out[mine] = before + np.arange(len(mine))
        else:
            times = start[mine] - start[mine[0]]
            out[mine] = before + times * count // (int(times[-1]) + 1)
        before = int(out[mine[-1]]) + 1
    return out


def _binned(values: Array, weight: Array, at: Array, is_count: bool) -> Array:
    if not len(at):
        return values
    there = ~np.isnan(values)
    has = np.add.reduceat(there, at, dtype=np.int64) > 0
    if is_count:
        return np.where(has, np.add.reduceat(np.where(there, values, 0.0), at), np.nan)
    weight = np.where(there, np.maximum(weight, 1), 0).astype(np.float64)
    total = np.add.reduceat(np.where(there, values, 0.0) * weight, at)
    return np.where(has, total / np.maximum(np.add.reduceat(weight, at), 1), np.nan)


def _footers(shown: int, bins: int, early: int, late: int, every: Array, start: Array, first: int) -> tuple[str, ...]:
    if not len(every):
        return ()
    lines = []
    if shown > bins:
        lines.append(
            f"{shown:,} samples in {bins} rows: means over the time of a row, sums of what counts; --limit sets how many."
        )
    if early or late:
        before = (
            f"{early:,} samples ({format_time(first - int(start[every].min()))}) from before the first activity"
            if early
            else ""
        )
        after = f"{late:,} from after the last" if late else ""
        lines.append(
            f"Left out: {' and '.join(filter(None, (before, after)))}; the view metrics-long has every sample."
        )
    return (*lines, "A sample is of the whole device: of all streams, and of other programs on it too.")
