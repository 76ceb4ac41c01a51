"""The terminal: tables as wide as the window, names cut to fit. The only file of report/ that imports rich."""

from __future__ import annotations

import io

from cuptiprof.report.model import Report
from cuptiprof.report.names import display_width, printable
from cuptiprof.report.render.cells import (
    block_spans,
    format_column,
    human_columns,
    is_left_aligned,
    missing_notes,
)
from cuptiprof.report.units import check_time_unit


def to_rich(report: Report, width: int | None = None) -> str:
    """The report with colours and box lines, ``width`` cells wide (None: as wide as the terminal)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view, units = report.content, check_time_unit(report.units)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, markup=False, highlight=False, emoji=False)
    console.print(Text(report.title, style="bold"))
    for line in report.header:
        simulated = line.startswith("SIMULATED")
        console.print(Text(printable(line), style="bold yellow" if simulated else "dim", overflow="fold"))
    columns = [column for column in human_columns(view) if column.key != view.block_key]
    cells = [format_column(view, column, units) for column in columns]
    for block, first, after in block_spans(view):
        if first == after:
            continue
        title = Text(block, style="bold") if block else None
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column, column_cells in zip(columns, cells, strict=True):
            left = is_left_aligned(column)
            # Numbers keep their width: on a narrow terminal only names give way.
            widest = max(map(display_width, (column.title, *column_cells[first:after])))
            table.add_column(
                Text(column.title),
                justify="left" if left else "right",
                no_wrap=True,
                overflow="ellipsis",
                min_width=min(widest, 12) if left else widest,
            )
        for i in range(first, after):
            # Text objects are not parsed for markup, so that `[red]` in a name stays what it is.
            table.add_row(*(Text(column_cells[i]) for column_cells in cells))
        console.print(table)
    for line in (*missing_notes(view), *view.footers):
        console.print(Text(printable(line), style="dim"))
    if report.losses_line:
        console.print(Text(printable(report.losses_line), style="bold red"))
    return out.getvalue()
