"""A report as text, rich text, Markdown, CSV or JSON (and as HTML, for notebooks). One file a format."""

from __future__ import annotations

import os
from typing import Any

from cuptiprof.errors import ResultError
from cuptiprof.report.model import Report
from cuptiprof.report.render.to_csv import to_csv
from cuptiprof.report.render.to_json import to_json
from cuptiprof.report.render.to_markdown import to_markdown
from cuptiprof.report.render.to_rich import to_rich
from cuptiprof.report.render.to_text import to_text

FORMATS = ("text", "rich", "markdown", "csv", "json")


def render(report: Report, format: str = "text", *, width: int | None = None, color: bool = True) -> str:
    """The report in one of :data:`FORMATS`; for "rich" ``width`` in cells (None: that of the terminal) and whether in ``color``.

    Raises:
        ResultError: an unknown format.
    """
    match format:
        case "text":
            return to_text(report)
        case "rich":
            return to_rich(report, width, color=color)
        case "markdown":
            return to_markdown(report)
        case "csv":
            return to_csv(report)
        case "json":
            return to_json(report)
    raise ResultError(f"unknown format {format!r}", hint=f"one of: {', '.join(FORMATS)}")


def render_for(report: Report, stream: Any, format: str | None = None, *, color: bool | None = None) -> str:
    """The report as it is fit for where it goes.

    ``stream``: None for a file. Without ``format``: "rich" on a terminal and where COLUMNS says how wide it shall be, else
    "text", of which nothing is cut. ``color``: default: on a terminal, and where "rich" was asked for.

    Raises:
        ResultError: an unknown format.
    """
    terminal = stream is not None and not getattr(stream, "closed", False) and stream.isatty()
    if color is None:
        color = terminal or format == "rich"
    if format is None:
        columns = os.environ.get("COLUMNS", "")
        # With LINES beside it nobody chose it: readline puts both into the environment of whatever its process starts.
        chosen = columns.isdecimal() and int(columns) and "LINES" not in os.environ
        fits = stream is not None and chosen
        format = "rich" if terminal or fits else "text"
    return render(report, format, color=color)
