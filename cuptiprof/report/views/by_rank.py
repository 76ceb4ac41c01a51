"""What the views of one or several ranks share: a table out of rows, the rank of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing


def rank_of(run: Result) -> int:
    """The rank that a run or a trace says it is; 0 where it says none."""
    rank = run.metadata.get("rank")
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else 0


def table(
    result: Result,
    columns: tuple[Column, ...],
    rows: Sequence[Mapping[str, Any]],
    *,
    limit: int | None = None,
    what: str = "GPU activities",
    legend: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> View:
    """Rows as a view: the first ``limit`` of them, and what is to be said where there are none."""
    shown = rows if limit is None else rows[:limit]
    return View(
        columns=columns,
        data={column.key: [row.get(column.key) for row in shown] for column in columns},
        footers=(*left_out(len(rows), len(shown)), *(legend if rows else ())),
        notes={"": nothing(what, result.losses["filter_rejected"])},
        facts=facts or {},
    )
