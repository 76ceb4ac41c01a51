"""Sections that are reports, as tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cuptiprof.data.result import Result
from cuptiprof.page.section import Section
from cuptiprof.report import VIEWS, make_report
from cuptiprof.report.model import Report

_NEEDS: dict[str, Callable[[Result], bool]] = {
    "collectives": lambda result: len(result.collectives) > 0,
    "allocator": lambda result: len(result.allocator_events) > 0,
    "memory": lambda result: len(result.memory) > 0,
    "metrics-wide": lambda result: len(result.metric_ranges) > 0,
    "sections": lambda result: len(result.metric_ranges) > 0,
}
"""What a view is not asked for without."""


def _section(views: tuple[str, ...], summary: str, title: str, result: Result) -> Section | None:
    reports = [make_report(result, view) for view in views if _NEEDS.get(view, bool)(result)]
    tables = tuple(report for report in reports if len(report.content))
    return Section(views[0], title or VIEWS[views[0]].title, summary, tables) if tables else None


def _of(*views: str, summary: str = "", title: str = "") -> Callable[[Result], Section | None]:
    return partial(_section, views, summary, title)


def overview(result: Result) -> Section:
    return Section("overview", "Overview", tables=(make_report(result, "overview"),))


def advice(result: Result) -> Section:
    """Also where nothing stands out: that is said."""
    return Section(
        "advise", "Advice", "What can be gained at most, where, and what to try.", (make_report(result, "advise"),)
    )


def difference(reports: tuple[Report, ...]) -> Section:
    """Of two runs."""
    return Section("diff", "Difference", "The second run against the first.", reports)


steps = _of("steps", summary="What the time of each training step went to.")
kernels = _of("kernels", summary="By name, all launches of it together.")
operators = _of(
    "operators", "operators-by-shape", summary="PyTorch's operators, by name and by the shapes of their inputs."
)
modules = _of("modules", summary="PyTorch's modules: the work of the operators that ran in each, forward and backward.")
regions = _of("regions", summary="As they nest, with the work that was launched in each.")
profile = _of("summary", title="Kernels, copies and API calls", summary="As nvprof lists them.")
idle = _of(
    "idle",
    "launches",
    "queue",
    title="Idle time and launches",
    summary="Why streams waited, and how long launches took.",
)
copies = _of("bandwidth", title="Copies", summary="Bandwidth by kind of copy.")
gpus = _of("gpu", "temporal", "kernel-types", title="GPUs", summary="What each is, and what it did with its time.")
communication = _of("collectives", "overlap", title="Communication", summary="Between ranks.")
memory = _of("allocator", "memory", title="Memory", summary="Who held it when most was held.")
shapes = _of(
    "waves",
    "kernels-by-properties",
    title="Launch shapes",
    summary="Waves of blocks and their tails; kernels by what their launches are made of.",
)
counters = _of("metrics-wide", "sections", title="Hardware counters", summary="Of the kernels that were measured.")
system = _of(
    "system",
    "system-events",
    title="System",
    summary="What was read of the GPUs and the host beside the program, what held the clocks, errors of GPUs.",
)
critical_path = _of(
    "critical-path", summary="What the length of the run is made of, and what shortening it would save."
)
captures = _of("captures", title="CUDA graphs", summary="By where they were captured.")
