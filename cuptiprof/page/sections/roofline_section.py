"""The roofline: measured kernels under the roofs of their chip."""

from __future__ import annotations

from cuptiprof.data.result import Result
from cuptiprof.page.section import Section
from cuptiprof.report import make_report

_SUMMARY = (
    "Each dot is a kernel (or region) by one precision and one level of memory; what is close to a roof is bound by it."
)


def roofline_chart(result: Result) -> Section | None:
    """None where operations and bytes were not both counted."""
    report = make_report(result, "roofline")
    if not any(value is not None for value in report.content.data["intensity"]):
        return None
    return Section(
        "roofline",
        "Roofline",
        _SUMMARY,
        (report,),
        mount="roofline",
        scripts=("roofline_axes.js", "roofline.js"),
        styles=("charts.css", "roofline.css"),
    )
