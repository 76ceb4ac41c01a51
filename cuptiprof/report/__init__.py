"""Reports: views over a Result. A new view is one file with one function and one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cuptiprof.errors import ResultError
from cuptiprof.report import api_trace, gpu_trace, regions, summary
from cuptiprof.report.model import Block, Report
from cuptiprof.result import Result

__all__ = ["VIEWS", "Report", "View", "make_report"]


class View(Protocol):
    """A view: blocks out of a result. `demangle` and `limit` (rows a block; None: all) are common to all."""

    def __call__(self, result: Result, *, demangle: bool = True, limit: int | None = None) -> list[Block]: ...


VIEWS: dict[str, Callable[..., list[Block]]] = {
    "summary": summary.blocks,
    "gpu-trace": gpu_trace.blocks,
    "api-trace": api_trace.blocks,
    "regions": regions.blocks,
}

_TITLES = {
    "summary": "Profiling result",
    "gpu-trace": "GPU trace",
    "api-trace": "API trace",
    "regions": "Regions",
}


def make_report(result: Result, view: str = "summary", *, units: str = "auto", **options: Any) -> Report:
    """Build a view.

    Raises:
        ResultError: an unknown view or unit.
    """
    if view not in VIEWS:
        raise ResultError(f"unknown view {view!r}", hint=f"one of: {', '.join(VIEWS)}")
    from cuptiprof.report.units import time_text

    time_text(0, units)  # an unknown unit is refused before any work
    keys = ("device", "simulated", "simulated_chip", "origin", "cuptiprof_version", "host")
    return Report(
        view=view,
        title=_TITLES[view],
        header=_header(result),
        blocks=VIEWS[view](result, **options),
        losses=dict(result.losses),
        losses_line=result.losses.line(),
        units=units,
        metadata={k: result.metadata[k] for k in keys if k in result.metadata},
    )


def _header(result: Result) -> list[str]:
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
    if m.get("note"):
        lines.append(str(m["note"]))
    return lines
