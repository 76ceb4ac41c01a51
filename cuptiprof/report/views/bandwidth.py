"""HTA's memory bandwidth: copies and sets by kind, in figures and over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cuptiprof.analysis.work.copy_bandwidth import copy_bandwidths
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import Columns, column_table, rank_of, table

_WHERE = (Column("rank", "Rank", "count"), Column("device", "GPU", "count"), Column("copy_kind", "Kind", "label"))
_SUMMARY = (
    *_WHERE,
    Column("copies", "Copies", "count", rank=1),
    Column("bytes", "Size", "bytes", min_width=8),
    Column("time_ns", "Time", "duration", min_width=8, rank=2),
    Column("count", "Changes", "count", human=False),
    Column("mean_bytes_per_s", "Mean", "byte_rate", min_width=8),
    Column("std_bytes_per_s", "Std", "byte_rate", rank=4),
    Column("minimum_bytes_per_s", "Min", "byte_rate", min_width=8, rank=3),
    Column("p25_bytes_per_s", "25%", "byte_rate", rank=6),
    Column("median_bytes_per_s", "Median", "byte_rate", min_width=8),
    Column("p75_bytes_per_s", "75%", "byte_rate", rank=5),
    Column("maximum_bytes_per_s", "Max", "byte_rate", min_width=8),
)
_SERIES = (
    Column("time_ns", "Time", "instant", min_width=8),
    *_WHERE,
    Column("bytes_per_s", "Bandwidth", "byte_rate", min_width=8),
)
_LEGEND = (
    "Bandwidth of copies that run at once added up, over its changes, without the times at which nothing was copied.",
)
_WHAT = "copies and sets"


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank, GPU and kind of copy."""
    del demangle
    rows = []
    for run in (result, *ranks):
        for kind in copy_bandwidths(run):
            points = asdict(kind.points) if kind.points else {}
            rows.append({
                "rank": rank_of(run), "device": kind.device, "copy_kind": kind.kind, "copies": kind.copies,
                "bytes": kind.bytes, "time_ns": kind.busy, "count": points.pop("count", 0),
                **{f"{name}_bytes_per_s": value for name, value in points.items()},
            })  # fmt: skip
    return table(result, _SUMMARY, rows, limit=limit, what=_WHAT, legend=_LEGEND)


def series(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a change of the bandwidth, kind by kind; it holds until the next row of the kind."""
    del demangle
    columns, total, origin = Columns(_SERIES), 0, origin_ns(result)
    for run in (result, *ranks):
        for kind in copy_bandwidths(run):
            total += len(kind.time)
            columns.add(
                len(kind.time[:limit]),
                rank=rank_of(run), device=kind.device, copy_kind=kind.kind,
                time_ns=kind.time[:limit] - origin, bytes_per_s=kind.rate[:limit],
            )  # fmt: skip
    return column_table(result, columns, total, limit, _WHAT, (), {"origin_ns": origin})
