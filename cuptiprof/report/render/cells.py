"""One raw value as text for people, by the kind of its column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuptiprof.report.model import Column, View
from cuptiprof.text.metric_units import format_metric, scale_metric
from cuptiprof.text.names import printable
from cuptiprof.text.units import (
    TimeUnit,
    format_byte_rate,
    format_bytes,
    format_flop,
    format_flop_rate,
    format_percent,
    format_time,
    is_missing,
)

MISSING = "-"


def human_columns(view: View) -> list[Column]:
    elsewhere = {view.message_key, *(heading.key for heading in view.headings)}
    return [column for column in view.columns if column.human and column.key not in elsewhere]


def is_left_aligned(column: Column) -> bool:
    return column.kind == "text"


def format_column(view: View, column: Column, units: TimeUnit) -> list[str]:
    """All cells of a column; names are made printable, missing values become ``-``."""
    if column.kind in ("metric", "metric_number", "metric_unit"):
        return _metric_cells(view, column)
    formatter = _formatter(column, units)
    values = view.data[column.key]
    cells = [MISSING if is_missing(value) else formatter(value) for value in values]
    if column.kind == "text" and view.depth_key:
        depths = view.data[view.depth_key]
        cells = [f"{'  ' * depth}{cell}" for depth, cell in zip(depths, cells, strict=True)]
    return cells


def _formatter(column: Column, units: TimeUnit) -> Callable[[Any], str]:
    match column.kind:
        case "text" | "label":
            return lambda value: printable(str(value))
        case "percent":
            return format_percent
        case "duration" | "instant":
            return lambda value: format_time(value, units)
        case "bytes":
            return format_bytes
        case "byte_rate":
            return format_byte_rate
        case "flop":
            return format_flop
        case "flop_rate":
            return format_flop_rate
        case "count":
            return str
        case "dims":
            return lambda value: f"({value[0]} {value[1]} {value[2]})"
    raise AssertionError(f"a {column.kind} needs its unit")


def _metric_cells(view: View, column: Column) -> list[str]:
    values = view.data[column.value_key or column.key]
    units = view.data[column.unit_key] if column.unit_key else [column.unit] * len(values)
    if column.kind == "metric_unit":
        units = view.data[column.key]
    return [
        MISSING if is_missing(value) else _metric_cell(column, value, unit or "")
        for value, unit in zip(values, units, strict=True)
    ]


def _metric_cell(column: Column, value: float, unit: str) -> str:
    if column.kind == "metric":
        return printable(format_metric(value, unit))
    number, scaled = scale_metric(value, unit)
    return number if column.kind == "metric_number" else printable(scaled) or MISSING


def message_rows(view: View) -> dict[int, str]:
    """Row -> its sentence, for the rows that are sentences."""
    if not view.message_key:
        return {}
    return {i: str(text) for i, text in enumerate(view.data[view.message_key]) if text}


def heading_lines(view: View) -> dict[int, list[tuple[int, str]]]:
    """Row -> the lines above it, each with its level: one for every heading whose value, or one further out, is new."""
    out: dict[int, list[tuple[int, str]]] = {}
    columns = [view.data[heading.key] for heading in view.headings]
    before: list[Any] = [None] * len(columns)
    for i, values in enumerate(zip(*columns, strict=True)):
        new = False
        for level, (heading, value) in enumerate(zip(view.headings, values, strict=True)):
            new = new or i == 0 or value != before[level]
            if new and value is not None:
                out.setdefault(i, []).append((level, printable(heading.text(value))))
        before = list(values)
    return out


def table_spans(view: View) -> list[tuple[list[str], int, int]]:
    """The rows as runs that are shown as one table each: (lines above it, first row, row after the last)."""
    if not view.headings:
        return [([block] if block else [], first, after) for block, first, after in block_spans(view)]
    lines = heading_lines(view)
    if not len(view):
        return []
    starts = sorted({0, *lines})
    return [
        ([text for _, text in lines.get(first, [])], first, after)
        for first, after in zip(starts, [*starts[1:], len(view)], strict=True)
    ]


def block_spans(view: View) -> list[tuple[str, int, int]]:
    """Runs of rows with one value of the block column: (block, first row, row after the last)."""
    if not view.block_key:
        return [("", 0, len(view))]
    values = view.data[view.block_key]
    spans: list[tuple[str, int, int]] = []
    for i, value in enumerate(values):
        if spans and spans[-1][0] == value:
            spans[-1] = (value, spans[-1][1], i + 1)
        else:
            spans.append((value, i, i + 1))
    return spans


def missing_notes(view: View) -> list[str]:
    """What to say of blocks that have no rows."""
    present = {block for block, first, after in block_spans(view) if after > first}
    return [note for block, note in view.notes.items() if block not in present]
