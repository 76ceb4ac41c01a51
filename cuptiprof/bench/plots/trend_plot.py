"""Times of points over the runs of a history, with the steps in them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from cuptiprof.bench.results.trends import PointTrend
from cuptiprof.errors import BenchError
from cuptiprof.pictures.canvas import new_figure, save_picture, shown, time_unit

MAX_PANELS = 16
MAX_NUMBERS = 6  # of the x axis


def plot_trends(trends: Sequence[PointTrend], path: str | os.PathLike[str]) -> None:
    """Write a panel for each series: the median of each run, and the median of the runs between two steps as a line.

    Raises:
        BenchError: more than 16 series.
        ResultError: another kind of file, it cannot be written, or matplotlib is not installed.
    """
    if len(trends) > MAX_PANELS:
        raise BenchError(f"{len(trends)} series are too many for one picture", hint="--filter chooses points")
    save_picture(path, lambda: _draw(trends))


def _draw(trends: Sequence[PointTrend]) -> Any:
    across = 1 if len(trends) < 3 else 2 if len(trends) < 9 else 3
    down = math.ceil(len(trends) / across)
    figure = new_figure(max(8.0, 5.5 * across), max(3.5, 2.8 * down))
    chips = {t.of.conditions["chip"] for t in trends}
    if len(chips) == 1:
        figure.suptitle(shown(*chips), fontsize="medium")
    for i, trend in enumerate(trends):
        axes = figure.add_subplot(down, across, i + 1)
        point, readings = trend.of, trend.of.readings
        unit, scale = time_unit(max(r.ns for r in readings))
        axes.plot(range(len(readings)), [r.ns / scale for r in readings], "o", markersize=4, color="C0")
        first = 0
        for segment in trend.segments:
            after = first + len(segment.readings)
            axes.plot([first - 0.4, after - 0.6], [segment.median / scale] * 2, color="C1", linewidth=2)
            if first:
                axes.axvline(first - 0.5, color="0.35", linestyle="--", linewidth=1)
                axes.annotate(f"{100 * segment.change:+.1f} % at {shown(segment.readings[0].label)}", (first - 0.5, 1), (3, -3),
                              xycoords=("data", "axes fraction"), textcoords="offset points", va="top", fontsize="small")  # fmt: skip
            first = after
        every = math.ceil(len(readings) / MAX_NUMBERS)
        places = range(0, len(readings), every)
        axes.set_xticks(list(places), [f"{shown(readings[p].label)[:8]}\n{readings[p].date}" for p in places])
        axes.tick_params(labelsize="x-small")
        axes.margins(y=0.25)
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set_ylabel(f"time ({unit}), not from 0", fontsize="small")
        where = "" if len(chips) == 1 else f" on {point.conditions['chip']}, driver {point.conditions['driver']}"
        axes.set_title(shown(point.title + where), fontsize="small")
        axes.grid(alpha=0.3)
    return figure
