"""The samples of each point: how many at which time."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Float64
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError
from cuptiprof.pictures.canvas import bound, chip_title, new_figure, save_picture, shown, time_unit

MAX_PANELS = 16
MAX_BINS = 60
FEW_BINS = 5
ENDS = (
    0.01,
    0.99,
)  # quantiles between which all is shown: one sample at ten times the median would leave one bar of the rest
ROOM = 0.25  # of what lies between them, that is shown beside it


def plot_histograms(rows: Sequence[Row], environment: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a panel for each point: its samples in use, the median as a line and its interval as a band.

    Raises:
        BenchError: nothing measured, more than 16 points.
        ResultError: another kind of file, it cannot be written, or matplotlib is not installed.
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
    low, high = (float(q) for q in np.quantile(samples, ENDS))
    room = ROOM * (high - low)
    low, high = max(low - room, float(samples.min())), min(high + room, float(samples.max()))
    bulk = samples[(samples >= low) & (samples <= high)]
    q25, q75 = np.quantile(bulk, [0.25, 0.75])
    width = max(2 * float(q75 - q25) / len(bulk) ** (1 / 3), (high - low) / MAX_BINS)  # Freedman and Diaconis 1981
    step = _step(samples, tick)
    width = max(1, math.ceil(width / step)) * step if step else width
    width = max(width, 1e-6 * abs(low)) or 1.0
    start = low - (step or width) / 2
    bins = max(1, math.ceil((high - start) / width + 1e-9))
    return np.array([start + width * i for i in range(bins + 1)])


def _step(samples: Float64, tick: float) -> float:
    """ns between values that samples can have, by their clock or as they show it; 0: any."""
    values = np.unique(samples)
    apart = np.diff(values)
    apart = apart[apart > 1e-9 * float(values[-1])]
    seen = float(apart.min()) if len(apart) and len(values) < len(samples) / 2 else 0.0
    return max(seen, tick) if tick > 0 else seen  # NaN is not above 0


def _draw(measured: Sequence[tuple[str, Measurement]], environment: Mapping[str, Any]) -> Any:
    across = math.ceil(math.sqrt(len(measured)))
    down = math.ceil(len(measured) / across)
    figure = new_figure(max(6.0, 4.0 * across), max(3.5, 2.6 * down))
    figure.suptitle(f"{chip_title(environment)}\nline: median, band: its interval", fontsize="medium")
    for i, (title, m) in enumerate(measured):
        axes = figure.add_subplot(down, across, i + 1)
        edges = bin_edges(m.samples, m.tick)
        unit, scale = time_unit(float(edges[-1]))
        counts, _ = np.histogram(m.samples, edges)
        axes.bar(edges[:-1] / scale, counts, np.diff(edges) / scale, align="edge", color="C0")
        if len(counts) < FEW_BINS:  # a single bar is not all there is of the axis
            room = FEW_BINS * (edges[1] - edges[0]) / 2
            axes.set_xlim((edges[0] - room) / scale, (edges[-1] + room) / scale)
        median, (low, high) = m.median, (bound(end, m.median) for end in (m.interval.low, m.interval.high))
        if m.interval.confidence:
            axes.axvspan(low / scale, high / scale, color="C1", alpha=0.25, linewidth=0, zorder=0)
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
