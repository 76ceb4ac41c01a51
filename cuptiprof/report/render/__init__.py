"""Renderers: each turns a TableModel into text of one format."""

from __future__ import annotations

from typing import TextIO

from cuptiprof.report.model import TableModel
from cuptiprof.report.render.to_csv import to_csv
from cuptiprof.report.render.to_json import to_json
from cuptiprof.report.render.to_markdown import to_markdown
from cuptiprof.report.render.to_rich import to_rich
from cuptiprof.report.render.to_text import to_text
from cuptiprof.report.units import TimeUnit

FORMATS = ("text", "rich", "markdown", "csv", "json")


def render_model(
    model: TableModel, format: str, units: TimeUnit, *, width: int | None, file: TextIO | None
) -> str:
    """``model`` in one of FORMATS; ValueError for any other."""
    match format:
        case "text":
            return to_text(model, units)
        case "rich":
            return to_rich(model, units, width=width, file=file)
        case "markdown":
            return to_markdown(model, units)
        case "csv":
            return to_csv(model, units)
        case "json":
            return to_json(model)
    raise ValueError(f"unknown report format {format!r}: one of {', '.join(FORMATS)}")
