"""GitHub-flavoured Markdown: one table a block."""

from __future__ import annotations

import re

from cuptiprof.report.model import Report
from cuptiprof.report.render.cells import (
    format_column,
    human_columns,
    is_left_aligned,
    message_rows,
    missing_notes,
    table_spans,
)
from cuptiprof.text.names import printable
from cuptiprof.text.units import check_time_unit

# What Markdown, or the HTML inside it, would read as markup: everywhere, at the start of a line, and bare addresses.
_MARKUP = re.compile(r"[\\`*_\[\]<>|&~$@]|^(?:[#+-]|\d+[.)])(?=\s|$|[#+-])|https?(?=:)|www(?=\.)", re.ASCII)


def to_markdown(report: Report) -> str:
    view, units = report.content, check_time_unit(report.units)
    lines = [f"### {escape(report.title)}", ""]
    for line in report.header:
        lines += [escape(line), ""]
    columns = human_columns(view)
    cells = {column.key: format_column(view, column, units) for column in columns}
    shown = [column for column in columns if column.key != view.block_key]
    messages = message_rows(view)
    for above, first, after in table_spans(view):
        if first == after:
            continue
        for text in above:
            lines += [f"**{escape(text)}**", ""]
        said = [f"- {escape(messages[i])}" for i in range(first, after) if i in messages]
        if len(said) == after - first:
            lines += [*said, ""]
            continue
        lines.append("| " + " | ".join(escape(column.title) for column in shown) + " |")
        lines.append("|" + "|".join(":--" if is_left_aligned(column) else "--:" for column in shown) + "|")
        lines += [
            "| " + " | ".join(_cell(cells[column.key][i]) for column in shown) + " |"
            for i in range(first, after)
            if i not in messages
        ]
        lines += ["", *said, ""] if said else [""]
    for line in (*missing_notes(view), *view.footers):
        lines += [escape(line), ""]
    if report.losses_line:
        lines += [f"**{escape(report.losses_line)}**", ""]
    return "\n".join(lines)


def escape(text: str) -> str:
    """``text`` as Markdown that shows exactly it: markup escaped, control characters made visible."""
    return _MARKUP.sub(_escaped, printable(text))


def _escaped(match: re.Match[str]) -> str:
    text = match.group()
    # Entities rather than backslashes for what HTML or autolinks read; a pipe in a table needs one in every dialect.
    if text in "<>&|@":
        return {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "@": "&#64;"}[text]
    if text in ("http", "https", "www"):
        return f"{text[:-1]}&#{ord(text[-1])};"
    return f"{text[:-1]}\\{text[-1]}"


def _cell(text: str) -> str:
    """A cell; leading blanks (the depth in a tree) survive as no-break spaces."""
    body = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(body)) + escape(body)
