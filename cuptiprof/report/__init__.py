"""Reports: a view turns a Result into a table, a renderer turns the table into text.

A new view is one file with one function and one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuptiprof.analysis.kernel_counters import RecordedPlan
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report.model import Column, Report, View
from cuptiprof.report.views import (
    api_trace,
    gpu_trace,
    memory_path,
    metrics_table,
    nvprof_metrics,
    priorities,
    region_table,
    samples,
    section_pages,
    summary,
)
from cuptiprof.text.units import check_time_unit

__all__ = ["VIEWS", "Column", "Report", "View", "make_report"]

VIEWS: dict[str, Callable[..., View]] = {
    "summary": summary.view,
    "gpu-trace": gpu_trace.view,
    "api-trace": api_trace.view,
    "regions": region_table.view,
    "metrics": nvprof_metrics.metrics_view,
    "events": nvprof_metrics.events_view,
    "metrics-wide": metrics_table.wide,
    "metrics-long": metrics_table.long,
    "sections": section_pages.view,
    "memory-path": memory_path.view,
    "priorities": priorities.view,
    "samples": samples.view,
}
"""Name -> function of (result, *, demangle: bool = True, limit: int | None = None) -> View; `limit` is rows a block."""

_OF_TIMES = frozenset({"summary", "gpu-trace", "regions", "priorities"})
"""Views of times: work without any is left out of them, and the header says so."""

_TITLES = {
    "summary": "Profiling result",
    "gpu-trace": "GPU trace",
    "api-trace": "API trace",
    "regions": "Regions",
    "metrics": "Metric result",
    "events": "Event result",
    "metrics-wide": "Metrics",
    "metrics-long": "Metric values",
    "sections": "Sections",
    "memory-path": "Memory paths",
    "priorities": "Kernel Optimization Priorities",
    "samples": "PM samples",
}


def make_report(result: Result, view: str = "summary", *, units: str = "auto", **options: Any) -> Report:
    """Build a view.

    Args:
        view: one of ``VIEWS``.
        units: of times, for people and in CSV: "auto", "s", "ms", "us" or "ns". JSON is always in ns.
        options: ``demangle`` (default True), ``limit`` (rows a block), and for the summary ``per_gpu``.

    Raises:
        ResultError: an unknown view or unit, or a negative limit.
    """
    if view not in VIEWS:
        raise ResultError(f"unknown view {view!r}", hint=f"one of: {', '.join(VIEWS)}")
    check_time_unit(units)
    limit = options.get("limit")
    if limit is not None and limit < 0:
        raise ResultError(f"limit={limit}: rows to show cannot be negative")
    keys = ("device", "simulated", "simulated_chip", "origin", "cuptiprof_version", "host")
    return Report(
        view=view,
        title=_TITLES[view],
        header=_header(result),
        content=VIEWS[view](result.timed() if view in _OF_TIMES else result, **options),
        losses=dict(result.losses),
        losses_line=result.losses.line(),
        units=units,
        metadata={k: result.metadata[k] for k in keys if k in result.metadata},
    )


def _header(result: Result) -> tuple[str, ...]:
    m = result.metadata
    lines = []
    device = str(m.get("device", ""))
    if result.simulated:
        what = (
            f"a replay of {device.partition(':')[2]}" if device.startswith("replay:") else "PyTorch operators by model"
        )
        lines.append(f"SIMULATED device (chip {m.get('simulated_chip') or 'unknown'}), {what}: not measured on a GPU")
    elif device.startswith("import:"):
        lines.append(f"imported from {device.partition(':')[2]}")
    names = sorted(set(result.devices["name"])) if len(result.devices) else []
    if names:
        lines.append("GPU: " + ", ".join(str(n) for n in names))
    untimed = sum(int((result.tables[t]["end"] == 0).sum()) for t in ("kernels", "memcpys", "memsets"))
    if untimed:
        lines.append(f"{untimed:,} kernels, copies and sets have no times and are left out of every sum of time")
    if m.get("note"):
        lines.append(str(m["note"]))
    plan = RecordedPlan.of(m)
    if plan is not None:
        lines += plan.lines(run_is_simulated=result.simulated)
    return tuple(lines)
