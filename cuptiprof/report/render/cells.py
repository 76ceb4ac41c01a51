"""One raw value as text for people, by the kind of its column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuptiprof.report.model import Column, View
from cuptiprof.report.names import printable
from cuptiprof.report.units import (
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
    return [column for column in view.columns if column.human]


def is_left_aligned(column: Column) -> bool:
    return column.kind == "text"


def format_column(view: View, column: Column, units: TimeUnit) -> list[str]:
    """All cells of a column; names are made printable, missing values become ``-``."""
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
