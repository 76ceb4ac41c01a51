"""A table in the width there is: names are shortened by meaning, then columns that say less are left out, and named."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cuptiprof.report.model import Column, View
from cuptiprof.report.render.cells import format_column, human_columns, is_left_aligned
from cuptiprof.text.names import display_width, printable
from cuptiprof.text.short_names import cut_middle, shorten
from cuptiprof.text.units import TimeUnit

GAP = 2  # blank cells between columns
_WANTED = 32  # cells of names for which columns are left out
_LEAST = 16  # cells that names have on the narrowest terminal
_TITLE = 16  # cells past which the name of a metric, over its column, is broken


@dataclass(frozen=True)
class FittedTable:
    """Columns of a view as they are shown; ``cells`` and ``titles`` (of several lines where broken) have their ``widths``."""

    columns: list[Column]
    titles: list[str]
    cells: list[list[str]]
    widths: list[int]
    left_out: list[str]

    @property
    def width(self) -> int:
        return sum(self.widths) + GAP * (len(self.widths) - 1)


def fit(view: View, units: TimeUnit, width: int) -> FittedTable:
    """The view in ``width`` cells, if it can be had: numbers are never cut, and the most needed columns never left out."""
    columns = [column for column in human_columns(view) if column.key != view.block_key]
    cells = {column.key: format_column(view, column, units) for column in columns}
    titles = {column.key: _title(column) for column in columns}
    needs = {
        column.key: max(map(display_width, (*titles[column.key].split("\n"), *set(cells[column.key]))))
        for column in columns
    }
    left_out = []
    for column in sorted((c for c in columns if c.rank), key=lambda c: -c.rank):
        if _least(columns, needs, _WANTED) <= width:
            break
        columns = [c for c in columns if c is not column]
        left_out.append(column)
    widths = _widths(columns, needs, width)
    return FittedTable(
        columns=columns,
        titles=[titles[column.key] for column in columns],
        cells=[_cut(column, cells[column.key], size) for column, size in zip(columns, widths, strict=True)],
        widths=widths,
        left_out=[printable(c.title) for c in human_columns(view) if c in left_out],
    )


def may_cut(column: Column) -> bool:
    return is_left_aligned(column) or column.may_cut


def _title(column: Column) -> str:
    title = printable(column.title)
    if column.kind != "metric" or display_width(title) <= _TITLE:
        return title
    lines = [""]
    for piece in re.findall(r"[^_.]*[_.]?", title):
        if lines[-1] and len(lines[-1] + piece) > _TITLE:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _least(columns: list[Column], needs: dict[str, int], names: int) -> int:
    return sum(min(needs[c.key], names) if may_cut(c) else needs[c.key] for c in columns) + GAP * (len(columns) - 1)


def _widths(columns: list[Column], needs: dict[str, int], available: int) -> list[int]:
    """Numbers have what they need; names share what is left."""
    widths = [needs[column.key] for column in columns]
    left = available - GAP * (len(columns) - 1) - sum(n for c, n in zip(columns, widths, strict=True) if not may_cut(c))
    names = sorted((i for i, column in enumerate(columns) if may_cut(column)), key=lambda i: widths[i])
    for done, i in enumerate(names):  # shortest first: what it does not need is left to the longer ones
        widths[i] = min(widths[i], max(left // (len(names) - done), _LEAST))
        left -= widths[i]
    return widths


def _cut(column: Column, cells: list[str], width: int) -> list[str]:
    if not may_cut(column):
        return cells
    inset = {
        cell: min(len(cell) - len(cell.lstrip(" ")), width - 1) for cell in set(cells)
    }  # the depth in a tree stays
    if column.is_function:
        short = {n: shorten((cell[n:] for cell in inset if inset[cell] == n), width - n) for n in {*inset.values()}}
        return [" " * inset[cell] + short[inset[cell]][cell[inset[cell] :]] for cell in cells]
    cut = {cell: " " * n + cut_middle(cell[n:], width - n) for cell, n in inset.items()}
    return [cut[cell] for cell in cells]
