"""A report in a notebook: tables of HTML, names shortened by meaning with the whole ones behind them, long tables cut."""

from __future__ import annotations

from cuptiprof.report.model import Report
from cuptiprof.report.render.cells import (
    format_column,
    human_columns,
    is_left_aligned,
    message_rows,
    missing_notes,
    table_spans,
)
from cuptiprof.text.html import html_line, html_table
from cuptiprof.text.short_names import shorten
from cuptiprof.text.units import check_time_unit

_ROWS = 100
_NAME = 64  # cells of a function's name


def to_html(report: Report) -> str:
    view, more = report.content.head(_ROWS)
    units = check_time_unit(report.units)
    out = [html_line(report.title, "font-weight:bold")]
    for line in report.header:
        out.append(html_line(line, "color:#b06000;font-weight:bold" if line.startswith("SIMULATED") else "color:gray"))
    columns = [column for column in human_columns(view) if column.key != view.block_key]
    cells, full = [], []
    for column in columns:
        texts = format_column(view, column, units)
        short = shorten((t.lstrip(" ") for t in texts), _NAME) if column.is_function else {}
        shown = [t[: len(t) - len(t.lstrip(" "))] + short.get(t.lstrip(" "), t.lstrip(" ")) for t in texts]
        cells.append(shown)
        full.append(dict(zip(shown, texts, strict=True)) if short else {})
    left = [is_left_aligned(column) for column in columns]
    messages = message_rows(view)
    for above, first, after in table_spans(view):
        out += [html_line(text, "font-weight:bold;margin-top:6px") for text in above]
        rows = [i for i in range(first, after) if i not in messages]
        if rows:
            titles = [column.title for column in columns]
            out.append(html_table(titles, ([c[i] for c in cells] for i in rows), left, full))
        out += [html_line(messages[i], "color:#b06000") for i in range(first, after) if i in messages]
    cut = (f"... and {more:,} more rows; print(report) shows all",) if more else ()
    out += [html_line(line, "color:gray") for line in (*missing_notes(view), *cut, *view.footers)]
    if report.losses_line:
        out.append(html_line(report.losses_line, "color:#c00000;font-weight:bold"))
    return f"<div>{''.join(out)}</div>"
