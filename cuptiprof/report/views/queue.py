"""HTA's queue length: what waited on each stream, in figures and over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cuptiprof.analysis.utilization.timeline import recorded_span
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.analysis.work.queue_lengths import FULL, queue_lengths
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import Columns, column_table, rank_of, table

_WHERE = (Column("rank", "Rank", "count"), Column("device", "GPU", "count"), Column("stream", "Stream", "count"))
_SUMMARY = (
    *_WHERE,
    Column("count", "Changes", "count", rank=3),
    Column("mean", "Mean", "metric"),
    Column("std", "Std", "metric", rank=2),
    Column("minimum", "Min", "metric", rank=1),
    Column("p25", "25%", "metric", rank=5),
    Column("median", "Median", "metric"),
    Column("p75", "75%", "metric", rank=4),
    Column("maximum", "Max", "metric"),
    Column("blocked_ns", "Full for", "duration", min_width=8),
    Column("blocked_pct", "Full(%)", "percent", rank=1),
)
_SERIES = (
    Column("time_ns", "Time", "instant", min_width=8),
    *_WHERE,
    Column("queue_length", "In queue", "count"),
)
_LEGEND = (
    "Launches in the queue of a stream, from the start of the call to the start of the work, over its changes.",
    f"Full: {FULL:,} or more, where calls block; (%): of the time recorded.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and stream."""
    del demangle
    rows = []
    for run in (result, *ranks):
        first, last = recorded_span(run) or (0, 0)
        for queue in queue_lengths(run):
            rows.append({
                "rank": rank_of(run), "device": queue.device, "stream": queue.stream, **asdict(queue.points),
                "blocked_ns": queue.blocked, "blocked_pct": 100.0 * queue.blocked / (last - first) if last > first else None,
            })  # fmt: skip
    return table(result, _SUMMARY, rows, limit=limit, what="launches", legend=_LEGEND)


def series(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a change of a queue's length, stream by stream; the length holds until the next row of the stream."""
    del demangle
    columns, total, origin = Columns(_SERIES), 0, origin_ns(result)
    for run in (result, *ranks):
        for queue in queue_lengths(run):
            total += len(queue.time)
            columns.add(
                len(queue.time[:limit]),
                rank=rank_of(run), device=queue.device, stream=queue.stream,
                time_ns=queue.time[:limit] - origin, queue_length=queue.length[:limit],
            )  # fmt: skip
    return column_table(result, columns, total, limit, "launches", (), {"origin_ns": origin})
