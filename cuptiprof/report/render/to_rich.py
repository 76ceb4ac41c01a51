"""The terminal: tables as wide as the window, names cut to fit. The only file of report/ that imports rich."""

from __future__ import annotations

import io

from cuptiprof.report.model import Column, Report
from cuptiprof.report.render.cells import (
    format_column,
    human_columns,
    is_left_aligned,
    message_rows,
    missing_notes,
    table_spans,
)
from cuptiprof.report.render.to_text import plain_table
from cuptiprof.text.names import display_width, printable
from cuptiprof.text.units import check_time_unit

_GAP = 1  # blank cells after a column
_MIN_NAME = 16
_MANY = 5_000  # rows past which rich's layout takes longer than reading them: they come as plain lines


def to_rich(report: Report, width: int | None = None) -> str:
    """The report with colours and box lines, ``width`` cells wide (None: as wide as the terminal)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view, units = report.content, check_time_unit(report.units)
    out = io.StringIO()

    def make_console(width: int | None) -> Console:
        return Console(file=out, width=width, force_terminal=True, markup=False, highlight=False, emoji=False)

    console = make_console(width)
    console.print(Text(report.title, style="bold"))
    for line in report.header:
        simulated = line.startswith("SIMULATED")
        console.print(Text(printable(line), style="bold yellow" if simulated else "dim", overflow="fold"))
    many = len(view) > _MANY
    if many:
        out.write("\n".join(plain_table(view, units)) + "\n")
    columns = [column for column in human_columns(view) if column.key != view.block_key]
    cells = [format_column(view, column, units) if not many else [] for column in columns]
    widths = _widths(columns, cells, console.width)
    messages = message_rows(view)
    for above, first, after in table_spans(view) if not many else ():
        if first == after:
            continue
        title = Text("\n".join(map(printable, above)), style="bold") if above else None
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, _GAP, 0, 0), pad_edge=False)
        for column, size in zip(columns, widths, strict=True):
            left = is_left_aligned(column)
            table.add_column(
                Text(printable(column.title)), justify="left" if left else "right", no_wrap=True, width=size
            )
        for i in range(first, after):
            if i in messages:
                continue
            row = []
            for column_cells, size in zip(cells, widths, strict=True):
                # Text objects are not parsed for markup, so that `[red]` in a name stays what it is.
                row.append(Text(column_cells[i]))
                row[-1].truncate(size, overflow="ellipsis")
            table.add_row(*row)
        # On a terminal too narrow for the numbers a line is broken by the terminal, not robbed of a column.
        if table.row_count:
            make_console(max(console.width, sum(widths) + (_GAP + 1) * len(widths) + 2)).print(table)
        elif title is not None:
            console.print(title)
        for i in range(first, after):
            if i in messages:
                console.print(Text(printable(messages[i]), style="yellow", overflow="fold"))
    for line in (*missing_notes(view), *view.footers):
        console.print(Text(printable(line), style="dim"))
    if report.losses_line:
        console.print(Text(printable(report.losses_line), style="bold red"))
    return out.getvalue()


def _may_cut(column: Column) -> bool:
    return is_left_aligned(column) or column.may_cut


def _widths(columns: list[Column], cells: list[list[str]], available: int) -> list[int]:
    """Width of each column: numbers have what they need, names share what is left, ``_MIN_NAME`` at the least."""
    widths = [
        max(map(display_width, (column.title, *column_cells)))
        for column, column_cells in zip(columns, cells, strict=True)
    ]
    left = available - (_GAP + 1) * len(columns) - 2
    left -= sum(width for column, width in zip(columns, widths, strict=True) if not _may_cut(column))
    names = sorted((i for i, column in enumerate(columns) if _may_cut(column)), key=lambda i: widths[i])
    for done, i in enumerate(names):  # shortest first: what it does not need is left to the longer ones
        widths[i] = min(widths[i], max(left // (len(names) - done), _MIN_NAME))
        left -= widths[i]
    return widths
