"""A report as text, rich text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from cuptiprof.errors import ResultError
from cuptiprof.report.model import Block, Report
from cuptiprof.report.units import shown

FORMATS = ("text", "rich", "markdown", "csv", "json")
MAX_NAME = 120


def render(report: Report, format: str = "text", *, width: int | None = None) -> str:
    """The report in one of :data:`FORMATS`.

    Raises:
        ResultError: an unknown format.
    """
    if format == "text":
        return _text(report)
    if format == "rich":
        return _rich(report, width)
    if format == "markdown":
        return _markdown(report)
    if format == "csv":
        return _csv(report)
    if format == "json":
        return _json(report)
    raise ResultError(f"unknown format {format!r}", hint=f"one of: {', '.join(FORMATS)}")


def _cells(block: Block, units: str) -> list[list[str]]:
    rows = []
    for row in block.rows:
        cells = [shown(row.get(c.key), c.kind, units) for c in block.columns]
        if block.indent_key:
            cells[-1] = "  " * int(row[block.indent_key]) + cells[-1]
        rows.append(cells)
    return rows


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 3] + "..."


def _text(report: Report) -> str:
    lines = [f"==cuptiprof== {report.title}"] + [f"==cuptiprof== {h}" for h in report.header]
    for block in report.blocks:
        if not block.rows and not block.note:
            continue
        cells = [[_shorten(c) for c in row] for row in _cells(block, report.units)]
        titles = [c.title for c in block.columns]
        widths = [max(len(t), *(len(r[i]) for r in cells)) if cells else len(t) for i, t in enumerate(titles)]
        if block.title:
            lines.append(f"{block.title}:")
        if block.rows:
            last = len(titles) - 1
            for row in [titles, *cells]:
                lines.append("  ".join(c if i == last else c.rjust(widths[i]) for i, c in enumerate(row)).rstrip())
        if block.note:
            lines.append(block.note)
        lines.append("")
    if not any(b.rows for b in report.blocks):
        lines.append("No activity was recorded.")
    if report.losses_line:
        lines.append(report.losses_line)
    return "\n".join(lines).rstrip() + "\n"


def _rich(report: Report, width: int | None) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    console.print(Text(report.title, style="bold"))
    for line in report.header:
        console.print(Text(line, style="dim"))
    for block in report.blocks:
        if not block.rows and not block.note:
            continue
        table = Table(title=Text(block.title) if block.title else None, title_justify="left")
        for i, c in enumerate(block.columns):
            last = i == len(block.columns) - 1
            table.add_column(
                Text(c.title),
                justify="left" if last else "right",
                no_wrap=True,
                overflow="ellipsis" if last else "fold",
            )
        for row in _cells(block, report.units):
            table.add_row(*(Text(cell) for cell in row))  # Text: names are never read as markup
        if block.rows:
            console.print(table)
        if block.note:
            console.print(Text(block.note, style="dim"))
    if not any(b.rows for b in report.blocks):
        console.print(Text("No activity was recorded."))
    if report.losses_line:
        console.print(Text(report.losses_line, style="bold red"))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def _markdown(report: Report) -> str:
    def escape(text: str) -> str:
        for c in ("\\", "|", "`", "<", ">", "*", "_", "[", "]"):
            text = text.replace(c, "\\" + c)
        return text

    lines = [f"### {escape(report.title)}", ""] + [f"{escape(h)}  " for h in report.header]
    for block in report.blocks:
        if not block.rows and not block.note:
            continue
        lines += ["", f"**{escape(block.title)}**" if block.title else "", ""]
        if block.rows:
            last = len(block.columns) - 1
            lines.append("| " + " | ".join(escape(c.title) for c in block.columns) + " |")
            lines.append("|" + "|".join(":--" if i == last else "--:" for i in range(last + 1)) + "|")
            for row in _cells(block, report.units):
                lines.append("| " + " | ".join(escape(_shorten(c)).replace("  ", "&nbsp;&nbsp;") for c in row) + " |")
        if block.note:
            lines += ["", escape(block.note)]
    if report.losses_line:
        lines += ["", f"**{escape(report.losses_line)}**"]
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    return " ".join(str(v) for v in value) if isinstance(value, tuple) else value


def _csv(report: Report) -> str:
    """Raw values (ns, bytes) by key, RFC 4180 quoting. Texts that a spreadsheet would run as a formula get a leading
    apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in [report.title, *report.header]:
        out.write(f"# {line}\n".replace("\r", " "))
    keys = list(dict.fromkeys(c.key for b in report.blocks for c in b.columns))
    writer.writerow(["block", *keys])
    for row in report.rows:
        values = [_plain(row.get(k)) for k in ("block", *keys)]
        writer.writerow(["'" + v if isinstance(v, str) and v[:1] in ("=", "+", "-", "@", "\t") else v for v in values])
    if report.losses_line:
        out.write(f"# {report.losses_line}\n")
    return out.getvalue()


def _json(report: Report) -> str:
    return json.dumps(
        {
            "view": report.view,
            "title": report.title,
            "header": report.header,
            "rows": report.rows,
            "losses": report.losses,
            "metadata": report.metadata,
        },
        default=lambda v: v.item() if hasattr(v, "item") else str(v),
    )
