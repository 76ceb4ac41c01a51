"""The roofline as a table: each measured kernel by precision and level of memory."""

from __future__ import annotations

from dataclasses import asdict

from cuptiprof.analysis.kernel_rules.kernel_roofline import roofline
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out

_COLUMNS = (
    Column("time_ns", "Time", "duration", min_width=8, rank=5),
    Column("launches", "Launches", "count", rank=6),
    Column("device", "GPU", "count", rank=9),
    Column("precision", "Precision", "label"),
    Column("level", "Memory", "label"),
    Column("flop_per_s", "Achieved", "flop_rate"),
    Column("peak_flop_per_s", "Peak", "flop_rate", rank=2),
    Column("bytes_per_s", "Traffic", "byte_rate", rank=3),
    Column("peak_bytes_per_s", "Peak", "byte_rate", rank=4),
    Column("intensity", "FLOP/byte", "metric"),
    Column("ridge", "Ridge", "metric", rank=1),
    Column("bound", "Bound", "label"),
    Column("share_pct", "Of roof", "percent"),
    Column("name", "Name", "text", is_function=True),
)
_LEGEND = (
    "Ridge: FLOP/byte at which the roofs of compute and of this memory meet; a kernel below it is bound by memory.",
    "Of roof: what was achieved, of min(peak, FLOP/byte x peak traffic). Peaks are at the clock that ran.",
)
_NOTHING = (
    "No roofline was recorded: it takes hardware counters. cuptiprof run --metrics roofline PROGRAM reads them; "
    'in Python profile(metrics="roofline").'
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a kernel (or region), precision that it worked in, and level of memory; what took longest first."""
    found = roofline(result, demangle)
    rows = [
        {
            **{key: value if value != "" else None for key, value in asdict(point).items()},
            "time_ns": point.time or None,
            "flop_per_s": point.work,
            "peak_flop_per_s": point.peak_work,
            "bytes_per_s": point.traffic,
            "peak_bytes_per_s": point.peak_traffic,
            "share_pct": None if point.share is None else 100 * point.share,
        }
        for point in found[:limit]
    ]
    return View(
        columns=_COLUMNS,
        data={column.key: [row[column.key] for row in rows] for column in _COLUMNS},
        footers=(*left_out(len(found), len(rows)), *(_LEGEND if found else ())),
        notes={"": _NOTHING},
    )
