"""Plain text in nvprof's look."""

from __future__ import annotations

from cuptiprof.report.model import TableModel
from cuptiprof.report.names import display_width
from cuptiprof.report.render.cells import format_column, human_columns, is_left_aligned, missing_notes
from cuptiprof.report.units import TimeUnit


def to_text(model: TableModel, units: TimeUnit = "auto") -> str:
    """The report as lines; nothing is cut."""
    lines = [f"{model.prefix}{line}" for line in model.preamble]
    if len(model):
        lines += _table(model, units)
    lines += missing_notes(model)
    if model.footers:
        lines += ["", *model.footers]
    if model.losses_line:
        lines += ["", model.losses_line]
    return "\n".join(lines) + "\n"


def _table(model: TableModel, units: TimeUnit) -> list[str]:
    padded: list[list[str]] = []
    columns = human_columns(model)
    for column in columns:
        cells = format_column(model, column, units)
        if column.suffix_key:
            ids = model.data[column.suffix_key]
            cells = [f"{cell} [{id_}]" for cell, id_ in zip(cells, ids, strict=True)]
        if column.key == model.block_key:  # the block's name once, as nvprof does
            cells = [
                "" if i and cells[i - 1] == cell else f"{cell}:" for i, cell in enumerate(cells)
            ]
        width = max(column.min_width, display_width(column.title), max(map(display_width, cells)))
        left = is_left_aligned(column)
        padded.append([_pad(cell, width, left) for cell in (column.title, *cells)])
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]


def _pad(cell: str, width: int, left: bool) -> str:
    fill = " " * (width - display_width(cell))
    return cell + fill if left else fill + cell
