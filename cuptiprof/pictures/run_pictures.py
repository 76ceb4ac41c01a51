"""The kinds of pictures of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuptiprof.analysis.kernel_rules.kernel_roofline import roofline
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.pictures import bars_and_curves, flame_and_timeline
from cuptiprof.pictures.canvas import add_legend, chip_title, line_style, new_figure, shown
from cuptiprof.pictures.picture import Picture
from cuptiprof.pictures.roofs import Roofs, roofline_axes
from cuptiprof.text.nearest import did_you_mean


def _roofline(result: Result, level: str = "dram") -> Any:
    """Measured kernels under the roofs of `level` of memory ("dram", "l2", "l1tex"), a mark for each precision."""
    points = [p for p in roofline(result) if p.level == level and p.intensity and p.work]
    if not points:
        raise ResultError(
            f"no roofline by {level} was recorded", hint='profile(metrics="roofline"); level="dram", "l2" or "l1tex"'
        )
    figure = new_figure(9, 5.5)
    axes = figure.add_subplot()
    memory = sorted({(level.upper(), p.peak_traffic) for p in points if p.peak_traffic})
    compute: dict[float, list[str]] = {}
    for p in points:
        if p.peak_work and p.precision not in compute.setdefault(p.peak_work, []):
            compute[p.peak_work].append(p.precision)
    names = [(", ".join(of) if len(of) <= 2 else f"{len(of)} precisions", peak) for peak, of in compute.items()]
    scale = roofline_axes(
        axes, Roofs(memory, names), [p.intensity for p in points if p.intensity], [p.work for p in points if p.work]
    )
    by_precision = dict.fromkeys(p.precision for p in points)
    for place, precision in enumerate(by_precision):
        mine = [p for p in points if p.precision == precision]
        style = {**line_style(place), "linestyle": "none"}
        axes.plot([p.intensity for p in mine], [(p.work or 0) / scale for p in mine], label=shown(precision), **style)
    axes.set_xlabel(f"arithmetic intensity (operations per byte of {level.upper()})")
    add_legend(figure, by_precision)
    return figure


PLOTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "timeline": ("When each stream worked", flame_and_timeline.timeline),
    "flame": ("GPU time by what launched it", flame_and_timeline.flame),
    "memory": ("Memory over time", bars_and_curves.memory),
    "occupancy": ("Estimated occupancy", bars_and_curves.occupancy),
    "roofline": ("Roofline", _roofline),
    "steps": ("Time of each step", bars_and_curves.steps),
    "kernels": ("Kernels that took longest", bars_and_curves.kernels),
}
"""Title, and what draws it: (result, options) -> figure; it raises ResultError where there is nothing to draw."""


def plot_run(result: Result, kind: str, **options: Any) -> Picture:
    """A picture of a run; see :meth:`cuptiprof.Result.plot`."""
    if kind not in PLOTS:
        raise ResultError(f"no plot {kind!r}{did_you_mean(kind, PLOTS)}", hint=f"one of: {', '.join(PLOTS)}")
    title, draw = PLOTS[kind]
    environment = {"chip": result.metadata.get("simulated_chip") or _chip(result), "simulated": result.simulated}

    def drawn() -> Any:
        figure = draw(result.timed(), **options)
        figure.suptitle(f"{title}: {chip_title(environment)}".rstrip(": "), fontsize="medium")
        return figure

    return Picture(title, drawn)


def _chip(result: Result) -> str:
    return ", ".join(sorted({str(name) for name in result.devices["name"]}))
