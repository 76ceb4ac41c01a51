"""Counters over time: PM samples of each device, put together in equal stretches of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.work.counted import units
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.text.metric_units import form_of


@dataclass(frozen=True)
class BinnedSamples:
    """One entry a bin that has samples, by device and time.

    Attributes:
        start, end: from the start of its first sample to the end of its last, ns.
        samples: in it. device: ordinal.
        values: by metric, float64; the mean over the samples weighted by their length, of what counts their sum; NaN where none has a value.
        before, after: samples left out, from before the first activity and after the last. total: all there are.
        first_sample, first_activity: when these began, ns; 0 where there is none.
    """

    start: Int64
    end: Int64
    samples: Int64
    device: Array
    values: dict[str, Float64]
    before: int
    after: int
    total: int
    first_sample: int
    first_activity: int

    @property
    def shown(self) -> int:
        """Samples that are in bins."""
        return self.total - self.before - self.after


def binned_samples(result: Result, *, width: int | None = None, count: int = 50) -> BinnedSamples:
    """All PM samples between the first activity (of a GPU, or call) and the last; all, where nothing else was recorded.

    Args:
        width: of a bin, ns: bins begin at whole multiples of it after the first activity. None: as many bins a device as ``count`` says, at
            most, equally long; a device of fewer samples has one each.
    """
    ranges = result.metric_ranges
    every = np.flatnonzero(ranges["kind"] == SAMPLE)
    every = every[np.lexsort((ranges["start"][every], ranges["device"][every]))]
    start, end = ranges["start"][every], ranges["end"][every]
    first, last = _activity(result)
    early, late = end <= first, start >= last
    inside = ~(early | late)
    if not inside.any():  # nothing ran: then the idle device is all there is to show
        inside[:], early[:], late[:] = True, False, False
    rows, start, end = every[inside], start[inside], end[inside]
    device = ranges["device"][rows]
    if width is None:
        bins = _equal_bins(device, start, max(count, 1))
        new = np.r_[True, bins[1:] != bins[:-1]][: len(bins)]
    else:
        bins = (start - origin_ns(result)) // width
        new = np.r_[True, (bins[1:] != bins[:-1]) | (device[1:] != device[:-1])][: len(bins)]
    at = np.flatnonzero(new)
    unit_of, counters = units(result), result.counters
    values = {}
    for metric in counters:
        column = counters[metric]
        if not np.isnan(column[every]).all():
            values[metric] = _binned(column[rows], end - start, at, form_of(unit_of[metric]) == "count")
    return BinnedSamples(
        start=start[at],
        end=np.maximum.reduceat(end, at) if len(at) else end,
        samples=np.diff(np.r_[at, len(rows)]),
        device=device[at],
        values=values,
        before=int(early.sum()),
        after=int(late.sum()),
        total=len(every),
        first_sample=int(ranges["start"][every].min()) if len(every) else 0,
        first_activity=first if early.any() else 0,
    )


def _activity(result: Result) -> tuple[int, int]:
    """From the first to the last GPU activity or API call, ns; everything where there was none."""
    tables = [t for n in ("kernels", "memcpys", "memsets", "api_calls") if len(t := result.tables[n].timed())]
    if not tables:
        return np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return min(int(t["start"].min()) for t in tables), max(int(t["end"].max()) for t in tables)


def _equal_bins(device: Array, start: Array, count: int) -> Int64:
    """Number of each sample's bin, rising: equal stretches of time of each device. Samples are sorted by both."""
    out = np.zeros(len(start), np.int64)
    before = 0
    for ordinal in np.unique(device).tolist():
        mine = np.flatnonzero(device == ordinal)
        if len(mine) <= count:
            out[mine] = before + np.arange(len(mine))
        else:
            times = start[mine] - start[mine[0]]
            out[mine] = before + times * count // (int(times[-1]) + 1)
        before = int(out[mine[-1]]) + 1
    return out


def _binned(values: Array, weight: Array, at: Array, is_count: bool) -> Float64:
    if not len(at):
        return np.zeros(0)
    there = ~np.isnan(values)
    has = np.add.reduceat(there, at, dtype=np.int64) > 0
    if is_count:
        return np.where(has, np.add.reduceat(np.where(there, values, 0.0), at), np.nan)
    weight = np.where(there, np.maximum(weight, 1), 0).astype(np.float64)
    total = np.add.reduceat(np.where(there, values, 0.0) * weight, at)
    return np.where(has, total / np.maximum(np.add.reduceat(weight, at), 1), np.nan)
