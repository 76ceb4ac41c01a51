"""A report as text, rich text, Markdown, CSV or JSON. One file a format."""

from __future__ import annotations

from cuptiprof.errors import ResultError
from cuptiprof.report.model import Report
from cuptiprof.report.render.to_csv import to_csv
from cuptiprof.report.render.to_json import to_json
from cuptiprof.report.render.to_markdown import to_markdown
from cuptiprof.report.render.to_rich import to_rich
from cuptiprof.report.render.to_text import to_text

FORMATS = ("text", "rich", "markdown", "csv", "json")


def render(report: Report, format: str = "text", *, width: int | None = None) -> str:
    """The report in one of :data:`FORMATS`; ``width`` in cells is for "rich" (None: that of the terminal).

    Raises:
        ResultError: an unknown format.
    """
    match format:
        case "text":
            return to_text(report)
        case "rich":
            return to_rich(report, width)
        case "markdown":
            return to_markdown(report)
        case "csv":
            return to_csv(report)
        case "json":
            return to_json(report)
    raise ResultError(f"unknown format {format!r}", hint=f"one of: {', '.join(FORMATS)}")
