"""Points under the roofs of their chip: operations/s over operations a byte, both axes logarithmic (Williams 2009)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Roofline
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError
from cuptiprof.pictures.canvas import add_legend, bound, chip_title, line_style, new_figure, save_picture, shown
from cuptiprof.pictures.roofs import Roofs, roofline_axes

MAX_NAMED = 12  # points with a colour and a name each; more have those of their benchmark


def plot_roofline(rows: Sequence[Row], environment: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the roofs that the points were set against, and each point that has operations and bytes.

    Raises:
        BenchError: no point has both.
        ResultError: another kind of file, it cannot be written, or matplotlib is not installed.
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
    roofs = Roofs([("DRAM", peak) for peak in memory], [("compute", peak) for peak in compute])
    scale = roofline_axes(axes, roofs, [r.intensity for _, _, r in placed], [r.flop_rate for _, _, r in placed])
    _points(figure, axes, placed, scale)
    axes.set_xlabel("arithmetic intensity (operations per byte of DRAM)")
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
