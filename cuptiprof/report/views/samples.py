"""The timeline of PM samples: what the whole device did, in as many rows as one looks at."""

from __future__ import annotations

from typing import Any

from cuptiprof.analysis.work.binned_samples import BinnedSamples, binned_samples
from cuptiprof.analysis.work.counted import device_label, device_labels, units
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report.model import Column, View, left_out
from cuptiprof.text.units import format_time

_BINS = 50  # rows a device where no limit says otherwise

_FIXED = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("samples", "Samples", "count", rank=2),
    Column("device", "Device", "label", rank=1),
    Column("device_ordinal", "Device", "count", human=False),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, bin_ns: int | None = None) -> View:
    """One row a stretch of time (a bin of samples), one column a metric.

    Without ``bin_ns`` there are at most ``limit`` bins a device, ``_BINS`` if None; with it bins are that long, and ``limit`` is rows.
    Instants are relative to the first activity, as in the traces. Sampling begins with the session, often long before the program's
    first call of CUDA: samples from before the first and after the last activity are left out, and counted.

    Raises:
        ResultError: ``bin_ns`` is below 1.
    """
    del demangle
    if bin_ns is not None and bin_ns < 1:
        raise ResultError(f"bin_ns={bin_ns}: a bin takes some time", hint="in ns, 1_000_000 for a millisecond")
    found = binned_samples(result, width=bin_ns, count=_BINS if limit is None else limit)
    rows = slice(0 if limit == 0 else limit if bin_ns is not None else None)
    labels, origin = device_labels(result), origin_ns(result)
    data: dict[str, Any] = {
        "start_ns": (found.start - origin)[rows].tolist(),
        "duration_ns": (found.end - found.start)[rows].tolist(),
        "samples": found.samples[rows].tolist(),
        "device": [device_label(labels, ordinal) for ordinal in found.device[rows].tolist()],
        "device_ordinal": found.device[rows].tolist(),
    }
    metrics: list[Column] = []
    unit_of = units(result)
    for metric, values in found.values.items():
        key = metric if metric not in data else f"metric {metric}"
        metrics.append(Column(key, metric, "metric", unit=unit_of[metric], rank=3 + len(metrics)))
        data[key] = values[rows].tolist()
    shown = len(data["start_ns"])
    more = left_out(len(found.start), shown) if bin_ns is not None else ()
    return View(
        columns=(*_FIXED, *metrics),
        data=data,
        footers=(*more, *_footers(found, shown, bin_ns)),
        notes={"": "No PM samples were recorded."},
        facts={"origin_ns": origin, "total_rows": found.total, "units": {c.key: c.unit for c in metrics}},
    )


def _footers(found: BinnedSamples, bins: int, bin_ns: int | None) -> tuple[str, ...]:
    if not found.total:
        return ()
    lines = []
    if bin_ns is not None:
        lines.append(f"Stretches of {format_time(bin_ns)}: means over the time of a row, sums of what counts.")
    elif found.shown > bins:
        lines.append(
            f"{found.shown:,} samples in {bins} rows: means over the time of a row, sums of what counts; --limit sets how many, --bin how long."
        )
    if found.before or found.after:
        ahead = format_time(found.first_activity - found.first_sample) if found.before else ""
        before = f"{found.before:,} samples ({ahead}) from before the first activity" if found.before else ""
        after = f"{found.after:,} from after the last" if found.after else ""
        lines.append(
            f"Left out: {' and '.join(filter(None, (before, after)))}; the view metrics-long has every sample."
        )
    return (*lines, "A sample is of the whole device: of all streams, and of other programs on it too.")
