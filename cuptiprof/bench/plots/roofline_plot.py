"""Points under the roofs of their chip: operations/s over operations a byte, both axes logarithmic (Williams 2009)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuptiprof.bench.plots.canvas import (
    MAX_LEGEND_INSIDE,
    ROOF,
    bound,
    chip_title,
    new_figure,
    number_ticks,
    rate_unit,
    save_picture,
    shown,
)
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Roofline
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError
from cuptiprof.text.units import format_byte_rate, format_flop_rate

MAX_NAMED = 12  # points with a colour and a name each; more have those of their benchmark
MARGIN = 3.0  # of the axes beyond what is in them
MARKERS = "osD^v<>P*X"


def plot_roofline(rows: Sequence[Row], environment: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the roofs that the points were set against, and each point that has operations and bytes.

    Raises:
        BenchError: no point has both, another kind of file, or matplotlib is not installed.
        ResultError: the file cannot be written.
    """
    placed = [(row, row.measurement, row.measurement.roofline) for row in rows
              if row.measurement is not None and row.measurement.roofline is not None]  # fmt: skip
    placed = [p for p in placed if _known(p[2].intensity) and _known(p[2].flop_rate)]
    if not placed:
        raise BenchError("no point has both operations and bytes", hint="flops= and bytes= of the benchmark")
    missing = sum(row.measurement is not None for row in rows) - len(placed)
    save_picture(path, lambda: _draw(placed, missing, environment))


def _known(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _draw(placed: Sequence[tuple[Row, Measurement, Roofline]], missing: int, environment: Mapping[str, Any]) -> Any:
    figure = new_figure()
    axes = figure.add_subplot()
    memory = sorted({r.peak_byte_rate for _, _, r in placed if _known(r.peak_byte_rate)})
    compute = sorted({r.peak_flop_rate for _, _, r in placed if _known(r.peak_flop_rate)})
    ridges = [c / m for c in compute for m in memory]
    reached = [r.intensity for _, _, r in placed]
    left, right = min(reached + ridges) / MARGIN, max(reached + ridges) * MARGIN
    rates = [r.flop_rate for _, _, r in placed]
    unit, scale = rate_unit(max(rates + compute), "FLOP/s")
    low = min(rates + [left * m for m in memory]) / MARGIN
    for peak in memory:
        end = min(max(compute) / peak, right) if compute else right
        axes.plot([left, end], [left * peak / scale, end * peak / scale], **ROOF)
        # Written along the line, in the middle of what is seen of it.
        middle = math.sqrt(left * end)
        axes.annotate(f"DRAM {format_byte_rate(peak)}", (middle, middle * peak / scale), xytext=(0, 4), textcoords="offset points",
                      rotation=_slope(figure, left, right, low, max(rates + compute) * MARGIN), rotation_mode="anchor",
                      ha="center", va="bottom", fontsize="small", color=ROOF["color"])  # fmt: skip
    for peak in compute:
        start = peak / max(memory) if memory else left
        axes.plot([start, right], [peak / scale] * 2, **ROOF)
        axes.annotate(f"compute {format_flop_rate(peak)}", (right, peak / scale), xytext=(-4, 3), textcoords="offset points",
                      ha="right", va="bottom", fontsize="small", color=ROOF["color"])  # fmt: skip
    _points(figure, axes, placed, scale)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(low / scale, max(rates + compute) * MARGIN / scale)
    number_ticks(axes.xaxis, left, right)
    number_ticks(axes.yaxis, low, max(rates + compute) * MARGIN)
    axes.set_xlabel("arithmetic intensity (operations per byte of DRAM)")
    axes.set_ylabel(f"operations ({unit})")
    axes.grid(alpha=0.3)
    said = f"; {missing} points have no operations or bytes" if missing else ""
    axes.set_title(chip_title(environment) + said, fontsize="medium")
    return figure


def _slope(figure: Any, left: float, right: float, low: float, high: float) -> float:
    """Degrees of a line of slope 1 on the two logarithmic axes, which fill about 0.85 of the figure each."""
    width, height = figure.get_size_inches()
    return math.degrees(math.atan2(height / math.log(high / low), width / math.log(right / left)))


def _points(figure: Any, axes: Any, placed: Sequence[tuple[Row, Measurement, Roofline]], scale: float) -> None:
    named: dict[str, list[tuple[Measurement, Roofline]]] = {}
    for row, m, r in placed:
        named.setdefault(row.title if len(placed) <= MAX_NAMED else row.benchmark, []).append((m, r))
    for place, (name, points) in enumerate(named.items()):
        values = np.array([r.flop_rate for _, r in points])
        ends = np.array([[r.flops / bound(e, m.median) * 1e9 if bound(e, m.median) > 0 else r.flop_rate
                          for e in (m.interval.high, m.interval.low)] for m, r in points]).T  # fmt: skip
        reach = np.maximum([values - ends[0], ends[1] - values], 0) / scale
        axes.errorbar([r.intensity for _, r in points], values / scale, reach, label=shown(name), markersize=6,
                      fmt=MARKERS[place // 10 % len(MARKERS)], color=f"C{place % 10}")  # fmt: skip
    if len(named) <= MAX_LEGEND_INSIDE:
        axes.legend(fontsize="small", loc="lower right")
    else:
        figure.legend(fontsize="x-small", loc="outside right upper")
