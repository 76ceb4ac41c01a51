"""The terminal: tables as wide as the window. The only file of report/ that imports rich."""

from __future__ import annotations

import io

from cuptiprof.report.model import Report
from cuptiprof.report.render.cells import MISSING, is_left_aligned, message_rows, missing_notes, table_spans
from cuptiprof.report.render.fit import GAP, FittedTable, fit
from cuptiprof.text.names import display_width, printable
from cuptiprof.text.short_names import shorten
from cuptiprof.text.units import check_time_unit

_MANY = 5_000  # rows past which rich's layout takes longer than reading them: they come as plain lines


def to_rich(report: Report, width: int | None = None, *, color: bool = True) -> str:
    """The report as tables of at most ``width`` cells where that is possible (None: as wide as the terminal).

    ``color``: with colours, unless the environment says otherwise (NO_COLOR, TERM=dumb).
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view = report.content
    out = io.StringIO()

    def make_console(width: int | None) -> Console:
        return Console(file=out, width=width, force_terminal=color, markup=False, highlight=False, emoji=False)

    console = make_console(width)
    console.print(Text(printable(report.title), style="bold"))
    for line in report.header:
        simulated = line.startswith("SIMULATED")
        console.print(Text(printable(line), style="bold yellow" if simulated else "dim", overflow="fold"))
    table = fit(view, check_time_unit(report.units), console.width)
    wide = make_console(
        max(console.width, table.width)
    )  # numbers are not cut: a terminal too narrow for them breaks the line
    messages = message_rows(view)
    for above, first, after in table_spans(view):
        if first == after:
            continue
        lines = ["", *(_heading(text, console.width) for text in above)]
        rows = [i for i in range(first, after) if i not in messages]
        if len(view) > _MANY:
            said = [printable(messages[i]) for i in range(first, after) if i in messages]
            out.write("\n".join([*lines, *(_plain_lines(table, rows) if rows else []), *said]) + "\n")
            continue
        console.print(Text("\n".join(lines), style="bold", overflow="fold"))
        if rows:
            titles = not first or not view.block_key  # blocks have the same columns: said once
            shown = Table(
                box=box.SIMPLE_HEAD, show_header=titles, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False
            )
            for column, title, size in zip(table.columns, table.titles, table.widths, strict=True):
                justify = "left" if is_left_aligned(column) else "right"
                shown.add_column(Text(title), justify=justify, no_wrap=True, width=size)
            for i in rows:
                # Text objects are not parsed for markup, so that `[red]` in a name stays what it is.
                shown.add_row(*(Text(cells[i], style="dim" if cells[i] == MISSING else "") for cells in table.cells))
            wide.print(shown)
        for i in range(first, after):
            if i in messages:
                console.print(Text(printable(messages[i]), style="yellow", overflow="fold"))
    if len(view):
        out.write("\n")
    for line in (*missing_notes(view), *_left_out(table), *view.footers):
        console.print(Text(printable(line), style="dim", overflow="fold"))
    if report.losses_line:
        console.print(Text(printable(report.losses_line), style="bold red", overflow="fold"))
    return "\n".join(line.rstrip(" ") for line in out.getvalue().split("\n"))


def _left_out(table: FittedTable) -> list[str]:
    if not table.left_out:
        return []
    return [f"Not shown at this width: {', '.join(table.left_out)}. A wider window or --format text shows all."]


def _heading(text: str, width: int) -> str:
    """A line above a table: of "Kernel: name" the name is shortened."""
    what, colon, name = printable(text).partition(": ")
    room = width - len(what) - len(colon)
    return what + colon + shorten([name], room)[name] if colon and room > 0 else what


def _plain_lines(table: FittedTable, rows: list[int]) -> list[str]:
    """The rows without rich's layout, which takes longer than reading them."""
    left = [is_left_aligned(column) for column in table.columns]
    columns = [
        [title.replace("\n", ""), *(cells[i] for i in rows)]
        for title, cells in zip(table.titles, table.cells, strict=True)
    ]
    padded = []
    for is_left, cells, width in zip(left, columns, table.widths, strict=True):
        fill = {cell: " " * (width - display_width(cell)) for cell in set(cells)}
        padded.append([cell + fill[cell] if is_left else fill[cell] + cell for cell in cells])
    return [(" " * GAP).join(row).rstrip() for row in zip(*padded, strict=True)]
