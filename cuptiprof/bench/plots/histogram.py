"""The samples of each point: how many at which time."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuptiprof.bench.plots.canvas import bound, chip_title, new_figure, save_picture, shown, time_unit
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Float64
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.stats.statistics import mad
from cuptiprof.errors import BenchError

MAX_PANELS = 16
MAX_BINS = 60
REACH = (
    8.0  # spreads about the median that are shown: one sample at ten times the median would leave one bar of the rest
)


def plot_histograms(rows: Sequence[Row], environment: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a panel for each point: its samples in use, the median as a line and its interval as a band.

    Raises:
        BenchError: nothing measured, more than 16 points, another kind of file, or matplotlib is not installed.
        ResultError: the file cannot be written.
    """
    measured = [(row.title, row.measurement) for row in rows if row.measurement is not None]
    if not measured:
        raise BenchError("no point has been measured")
    if len(measured) > MAX_PANELS:
        raise BenchError(f"{len(measured)} histograms are too many for one picture", hint="--filter chooses points")
    save_picture(path, lambda: _draw(measured, environment))


def bin_edges(samples: Float64, tick: float) -> Float64:
    """Shape (bins + 1,), ns: about the bulk of the samples; as wide as a whole number of ticks, between which there is nothing.

    Args:
        tick: resolution of the samples, ns; NaN: not known.
    """
    middle, spread = float(np.median(samples)), REACH * mad(samples)
    low, high = float(samples.min()), float(samples.max())
    if spread > 0:
        low, high = max(low, middle - spread), min(high, middle + spread)
    step = tick if tick > 0 else 0.0  # also NaN
    bulk = samples[(samples >= low) & (samples <= high)]
    q25, q75 = np.quantile(bulk, [0.25, 0.75])
    width = max(2 * float(q75 - q25) / len(bulk) ** (1 / 3), (high - low) / MAX_BINS)  # Freedman and Diaconis 1981
    width = max(1, math.ceil(width / step)) * step if step else width
    width = max(width, 1e-6 * abs(middle)) or 1.0
    start = low - (step or width) / 2
    bins = max(1, math.ceil((high - start) / width + 1e-9))
    return np.array([start + width * i for i in range(bins + 1)])


def _draw(measured: Sequence[tuple[str, Measurement]], environment: Mapping[str, Any]) -> Any:
    across = math.ceil(math.sqrt(len(measured)))
    down = math.ceil(len(measured) / across)
    figure = new_figure(max(6.0, 4.0 * across), max(3.5, 2.6 * down))
    figure.suptitle(chip_title(environment), fontsize="medium")
    for i, (title, m) in enumerate(measured):
        axes = figure.add_subplot(down, across, i + 1)
        edges = bin_edges(m.samples, m.tick)
        unit, scale = time_unit(float(edges[-1]))
        counts, _ = np.histogram(m.samples, edges)
        axes.bar(edges[:-1] / scale, counts, np.diff(edges) / scale, align="edge", color="C0", alpha=0.8)
        median, (low, high) = m.median, (bound(end, m.median) for end in (m.interval.low, m.interval.high))
        axes.axvspan(low / scale, high / scale, color="C1", alpha=0.35, linewidth=0)
        axes.axvline(median / scale, color="C1", linewidth=1.5)
        beyond = len(m.samples) - int(counts.sum())
        axes.set_title(shown(title), fontsize="small")
        axes.set_xlabel(f"time ({unit})" + (f"; {beyond} of {len(m.samples)} samples are further out" if beyond else ""), fontsize="small")  # fmt: skip
        axes.set_ylabel("samples", fontsize="small")
        axes.tick_params(labelsize="small")
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.locator_params(axis="x", nbins=5)
        axes.locator_params(axis="y", integer=True, nbins=5)
    return figure
