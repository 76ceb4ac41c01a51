"""What the views of one or several ranks share: a table out of rows, the rank of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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


class Columns:
    """Values by column, of many rows at a time: arrays and lists, and for what all of them share one value."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.data: dict[str, list[Any]] = {column.key: [] for column in columns}

    def add(self, rows: int, **values: Any) -> None:
        """``rows`` of them, below those that are there."""
        for key, column in self.data.items():
            value = values[key]
            if isinstance(value, np.ndarray):
                column += value.tolist()
            else:
                column += value if isinstance(value, list) else [value] * rows


def column_table(
    result: Result,
    columns: Columns,
    total: int,
    limit: int | None,
    what: str,
    legend: Sequence[str],
    facts: Mapping[str, Any],
) -> View:
    """A view of columns: the first ``limit`` rows of the ``total`` that there are."""
    data = {key: values[:limit] for key, values in columns.data.items()}
    shown = len(data[columns.columns[0].key])
    return View(
        columns=columns.columns,
        data=data,
        footers=(*left_out(total, shown), *(legend if total else ())),
        notes={"": nothing(what, result.losses["filter_rejected"])},
        facts=facts,
    )
