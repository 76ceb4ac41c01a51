"""Plain text in nvprof's look."""

from __future__ import annotations

from cuptiprof.report.model import Report, View
from cuptiprof.report.render.cells import (
    format_column,
    heading_lines,
    human_columns,
    is_left_aligned,
    message_rows,
    missing_notes,
)
from cuptiprof.text.names import display_width, printable
from cuptiprof.text.units import TimeUnit, check_time_unit

_PREFIX = "==cuptiprof== "


def to_text(report: Report) -> str:
    """The report as lines; nothing is cut."""
    view = report.content
    lines = [_PREFIX + printable(line) for line in (*report.header, f"{report.title}:")]
    if len(view):
        lines += plain_table(view, check_time_unit(report.units))
    lines += missing_notes(view)
    if view.footers:
        lines += ["", *map(printable, view.footers)]
    if report.losses_line:
        lines += ["", printable(report.losses_line)]
    return "\n".join(lines) + "\n"


def plain_table(view: View, units: TimeUnit) -> list[str]:
    """Titles and rows as padded lines, with the headings between them."""
    padded: list[list[str]] = []
    for column in human_columns(view):
        cells = format_column(view, column, units)
        if column.suffix_key:
            ids = view.data[column.suffix_key]
            cells = [f"{cell} [{id_}]" for cell, id_ in zip(cells, ids, strict=True)]
        if column.key == view.block_key:  # the block's name once, as nvprof does
            cells = ["" if i and cells[i - 1] == cell else f"{cell}:" for i, cell in enumerate(cells)]
        title = printable(column.title)
        width = max(column.min_width, display_width(title), max(map(display_width, cells)))
        left = is_left_aligned(column)
        padded.append([_pad(cell, width, left) for cell in (title, *cells)])
    rows = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    return rows if not view.headings else _under_headings(view, rows)


def _under_headings(view: View, rows: list[str]) -> list[str]:
    """The rows (the first are the titles) with the lines above them, indented by level as nvprof does."""
    headings, messages = heading_lines(view), message_rows(view)
    indent = "    " * len(view.headings)
    # Numbers at the left leave blanks of their own; names would stand further out than their headings.
    inset = indent if is_left_aligned(human_columns(view)[0]) else ""
    lines = [inset + rows[0]]
    for i, row in enumerate(rows[1:]):
        lines += ["    " * level + text for level, text in headings.get(i, [])]
        lines.append(indent + printable(messages[i]) if i in messages else inset + row)
    return lines


def _pad(cell: str, width: int, left: bool) -> str:
    fill = " " * (width - display_width(cell))
    return cell + fill if left else fill + cell
