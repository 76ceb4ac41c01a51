"""What a chart draws: columns of a table of its section, so that the numbers beside it are those in it. ``assets/charts.js`` draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from cuptiprof.data.tables import Array
from cuptiprof.page.packed import page_text
from cuptiprof.page.section import Section
from cuptiprof.report.model import Column, Report, View

Draw = Literal["line", "steps", "bars", "points"]
TableData = Mapping[str, Sequence[Any] | Array]
"""by column"""


@dataclass(frozen=True)
class DrawnColumn:
    """A column that is drawn. ``draw``: "steps" hold until the next; "points" may be missing (None)."""

    key: str
    title: str
    draw: Draw = "line"


@dataclass(frozen=True)
class Chart:
    """One chart of a section.

    Attributes:
        title: above it. table: which of the section's tables its columns are in.
        x: column across; "label" kinds stand one beside the other, in the table's order. x_title: what it says.
        y_title: what the series say. kind: of their values, as of a :class:`~cuptiprof.report.model.Column`.
        series: what is drawn, at least one.
        where: column -> value that a row must have to be in the chart.
        high: where the y axis ends, which begins at 0; None: at the highest value.
    """

    title: str
    x: str
    x_title: str
    y_title: str
    kind: str
    series: Sequence[DrawnColumn]
    table: int = 0
    where: Mapping[str, int] = field(default_factory=dict)
    high: float | None = None

    def facts(self) -> dict[str, Any]:
        """What the JavaScript is told."""
        series = [{**asdict(series), "title": page_text(series.title)} for series in self.series]
        return {**asdict(self), "series": series, "title": page_text(self.title), "y_title": page_text(self.y_title)}


def chart_section(key: str, title: str, summary: str, tables: Sequence[Report], charts: Sequence[Chart]) -> Section:
    """A section of charts, with the tables of their numbers below them."""
    return Section(
        key,
        title,
        summary,
        tuple(tables),
        facts={"charts": [chart.facts() for chart in charts]},
        mount="charts",
        scripts=("chart_data.js", "chart.js", "charts.js"),
        vendored=("uPlot.min.js", "uPlot.min.css"),
        styles=("charts.css",),
    )


def chart_table(
    view: str,
    title: str,
    columns: Sequence[Column],
    data: TableData,
    footers: Sequence[str] = (),
    depth_key: str = "",
) -> Report:
    """The numbers of charts as a table of the page; NaN where one is missing."""
    plain = {key: values.tolist() if isinstance(values, np.ndarray) else values for key, values in data.items()}
    content = View(columns=tuple(columns), data=plain, footers=tuple(footers), depth_key=depth_key)
    return Report(view, title, (), content, {}, "")
