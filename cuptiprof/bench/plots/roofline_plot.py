"""Points under the roofs of their chip: operations/s over operations a byte, both axes logarithmic (Williams 2009)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuptiprof.bench.plots.canvas import (
    ROOF,
    add_legend,
    bound,
    chip_title,
    line_style,
    new_figure,
    number_text,
    number_ticks,
    rate_unit,
    save_picture,
    shown,
)
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Roofline
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError

MAX_NAMED = 12  # points with a colour and a name each; more have those of their benchmark
MARGIN = 3.0  # of the axes beyond what is in them


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
        byte_unit, per_byte = rate_unit(peak, "B/s")
        end = min(max(compute) / peak, right) if compute else right
        axes.plot([left, end], [left * peak / scale, end * peak / scale], **ROOF)
        # Written along the line (of slope `peak` in data), in the middle of what is seen of it.
        middle = math.sqrt(left * end)
        axes.text(middle, 1.12 * middle * peak / scale, f"DRAM {number_text(peak / per_byte)} {byte_unit}", ha="center", va="bottom", fontsize="small",
                  color=ROOF["color"], rotation=math.degrees(math.atan(peak / scale)), rotation_mode="anchor",
                  transform_rotates_text=True)  # fmt: skip
    for peak in compute:
        start = peak / max(memory) if memory else left
        axes.plot([start, right], [peak / scale] * 2, **ROOF)
        axes.annotate(f"compute {number_text(peak / scale)} {unit}", (right, peak / scale), xytext=(-4, 3), textcoords="offset points",
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


def _points(figure: Any, axes: Any, placed: Sequence[tuple[Row, Measurement, Roofline]], scale: float) -> None:
    named: dict[str, list[tuple[Measurement, Roofline]]] = {}
    for row, m, r in placed:
        named.setdefault(row.title if len(placed) <= MAX_NAMED else row.benchmark, []).append((m, r))
    for place, (name, points) in enumerate(named.items()):
        values = np.array([r.flop_rate for _, r in points])
        ends = np.array([[r.flops / bound(e, m.median) * 1e9 if bound(e, m.median) > 0 else r.flop_rate
                          for e in (m.interval.high, m.interval.low)] for m, r in points]).T  # fmt: skip
        reach = np.maximum([values - ends[0], ends[1] - values], 0) / scale
        style = {**line_style(place), "linestyle": "none"}
        axes.errorbar([r.intensity for _, r in points], values / scale, reach, label=shown(name), **style)
    add_legend(figure, named)
