"""A report as columns of raw values and what is to be known to show them: ``assets/table.js`` is the other side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuptiprof.page.packed import PageColumn, page_text
from cuptiprof.report.model import Column, Report, View
from cuptiprof.report.render.cells import format_column, heading_lines, human_columns, is_left_aligned, missing_notes
from cuptiprof.text.units import is_missing

_TEXTS = ("text", "label", "dims", "metric_unit")
_METRICS = ("metric", "metric_number", "metric_unit")


def table_columns(view: View) -> dict[str, PageColumn]:
    """Raw values by column key; of counters, whose form depends on the unit, ``KEY#text`` as they are shown as well.
    ``#above`` is the line above a row that begins a block, ``#depth`` how deep in the tree it is."""
    out: dict[str, PageColumn] = {}
    for column in view.columns:
        out[column.key] = raw_column(column, view.data[column.key])
        if column.kind in _METRICS:
            out[f"{column.key}#text"] = format_column(view, column, "auto")
    if view.depth_key:
        out["#depth"] = np.asarray(view.data[view.depth_key], np.int64)
    above = _above(view)
    if above is not None:
        out["#above"] = above
    if view.message_key:
        out[view.message_key] = [str(text) if text else None for text in view.data[view.message_key]]
    return out


def raw_column(column: Column, values: Sequence[Any]) -> PageColumn:
    """Numbers as numbers, NaN where one is missing, and everything else as text."""
    if column.kind in _TEXTS:
        texts = [None if is_missing(value) else value for value in values]
        if column.kind == "dims":
            return [None if value is None else f"({' '.join(map(str, value))})" for value in texts]
        return [None if value is None else str(value) for value in texts]
    numbers = values if isinstance(values, np.ndarray) else list(values)
    if any(is_missing(value) for value in numbers):
        return np.array([np.nan if is_missing(value) else float(value) for value in numbers])
    array = np.asarray(numbers)
    return array if array.dtype.kind in "biuf" else array.astype(np.float64)


def table_facts(report: Report) -> dict[str, Any]:
    """What is said of a table and its columns."""
    view = report.content
    human = {column.key for column in human_columns(view) if column.key != view.block_key}
    lines = [*missing_notes(view), *view.footers]
    return {
        "view": report.view,
        "title": page_text(report.title),
        "rows": len(view),
        "columns": [
            {
                "key": column.key,
                "title": page_text(column.title),
                "kind": column.kind,
                "human": column.key in human,
                "machine": column.machine,
                "left": is_left_aligned(column),
            }
            for column in view.columns
        ],
        "message": view.message_key,
        "tree": bool(view.depth_key),
        "lines": [page_text(line) for line in lines],
    }


def _above(view: View) -> list[str | None] | None:
    """The block of each row, as the lines above its table say it; None: there are no blocks."""
    if view.headings:
        lines = heading_lines(view)
        out: list[str | None] = []
        open_: list[str] = []
        for row in range(len(view)):
            for level, text in lines.get(row, []):
                open_[level:] = [text]
            out.append(" \N{MIDDLE DOT} ".join(open_) or None)
        return out
    if view.block_key:
        return [None if is_missing(value) else str(value) for value in view.data[view.block_key]]
    return None
