"""The terminal: a table as wide as the window, names cut to fit. The only file of report/ that imports rich."""

from __future__ import annotations

import io
from typing import TextIO

from cuptiprof.report.model import TableModel
from cuptiprof.report.render.cells import (
    block_spans,
    format_column,
    human_columns,
    is_left_aligned,
    missing_notes,
)
from cuptiprof.report.units import TimeUnit


def to_rich(
    model: TableModel, units: TimeUnit = "auto", *, width: int | None = None, file: TextIO | None = None
) -> str:
    """The report for a terminal.

    ``width`` in cells (None: that of the terminal ``file`` is, else 100). Colours are used if ``file`` is a terminal.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = file is not None and file.isatty()
    if width is None:
        width = Console(file=file).width if is_terminal else 100
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=is_terminal, markup=False, highlight=False, emoji=False
    )
    for line in model.preamble:
        style = "bold yellow" if line.startswith("Device: ") else ""
        console.print(Text(line, style=style, overflow="fold"))
    columns = [column for column in human_columns(model) if column.key != model.block_key]
    cells = [format_column(model, column, units) for column in columns]
    for block, first, after in block_spans(model):
        if first == after:
            continue
        table = Table(
            title=Text(block, style="bold") if block else None,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            expand=False,
            pad_edge=False,
        )
        for column in columns:
            left = is_left_aligned(column)
            table.add_column(
                Text(column.title),
                justify="left" if left else "right",
                no_wrap=True,
                overflow="ellipsis",
                # Numbers keep their width: only names give way on a narrow terminal.
                min_width=12 if left else max(len(cell) for cell in (column.title, *cells[columns.index(column)][first:after])),
            )
        for i in range(first, after):
            # Text objects are not parsed for markup, so that `[red]` in a name stays what it is.
            table.add_row(*(Text(column_cells[i]) for column_cells in cells))
        console.print(table)
    for line in (*missing_notes(model), *model.footers):
        console.print(Text(line, style="dim"))
    if model.losses_line:
        console.print(Text(model.losses_line, style="bold red"))
    return out.getvalue()
