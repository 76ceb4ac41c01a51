"""Reports: a view turns a Result into a table, a renderer turns the table into text."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from cuptiprof.report.api_trace import ApiTraceView
from cuptiprof.report.gpu_trace import GpuTraceView
from cuptiprof.report.model import Column, TableModel
from cuptiprof.report.regions import RegionsView
from cuptiprof.report.render import FORMATS, render_model
from cuptiprof.report.summary import SummaryView
from cuptiprof.report.units import TIME_UNITS, check_time_unit
from cuptiprof.report.view import Options, View

if TYPE_CHECKING:
    from cuptiprof.result import Result

__all__ = ["FORMATS", "TIME_UNITS", "VIEWS", "Column", "Options", "TableModel", "View", "build", "render"]

_ALL: tuple[View, ...] = (SummaryView(), GpuTraceView(), ApiTraceView(), RegionsView())
VIEWS: dict[str, View] = {view.name: view for view in _ALL}


def build(result: Result, view: str = "summary", options: Options | None = None) -> TableModel:
    """The table of a view, with raw values (ns, bytes, percent). ValueError for an unknown view or option."""
    options = options or Options()
    if view not in VIEWS:
        raise ValueError(f"unknown view {view!r}: one of {', '.join(VIEWS)}")
    if options.limit is not None and options.limit < 0:
        raise ValueError(f"limit must not be negative: {options.limit}")
    return VIEWS[view].build(result, options)


def render(
    result: Result,
    view: str = "summary",
    format: str = "text",
    *,
    units: str = "auto",
    limit: int | None = None,
    demangling: bool = True,
    per_gpu: bool = False,
    sort_by: str = "",
    width: int | None = None,
    file: TextIO | None = None,
) -> str:
    """A report as text, also written to ``file`` if one is given.

    Args:
        view: one of ``report.VIEWS``.
        format: "text" (nvprof's look, never cut), "rich" (terminal), "markdown", "csv" or "json".
        units: of times for people and in CSV: "auto", "s", "ms", "us" or "ns". JSON is always in ns.
        limit: at most so many rows (of each block).
        demangling: show kernel names demangled.
        per_gpu: a block for each GPU (summary).
        sort_by: sort key, where a view offers several.
        width: cells of the terminal ("rich" only).

    Raises:
        ValueError: unknown view, format, unit or sort key, or a negative limit.
    """
    unit = check_time_unit(units)
    if format not in FORMATS:
        raise ValueError(f"unknown report format {format!r}: one of {', '.join(FORMATS)}")
    options = Options(limit=limit, demangling=demangling, per_gpu=per_gpu, sort_by=sort_by)
    text = render_model(build(result, view, options), format, unit, width=width, file=file)
    if file is not None:
        file.write(text)
    return text
