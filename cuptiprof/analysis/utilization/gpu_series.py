"""How much of each GPU was used over time, in equal stretches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.intervals import time_within, union_of
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.launch_sizes import launch_sizes
from cuptiprof.analysis.utilization.gpu_figures import filled_sms
from cuptiprof.analysis.utilization.timeline import recorded_span
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result

MOST_BUCKETS = 100


@dataclass(frozen=True)
class GpuSeries:
    """Of one GPU; columns of one length.

    Attributes:
        device: ordinal.
        start, end: of each bucket, ns.
        utilisation: share of the time observed in which any kernel ran, 0..1; NaN: nothing was observed (the session was paused).
        sm_efficiency: share of the SMs that kernels could fill, 0..1, NaN as before; None: the SMs are not known.
    """

    device: int
    start: Int64
    end: Int64
    utilisation: Float64
    sm_efficiency: Float64 | None


def gpu_series(result: Result) -> list[GpuSeries]:
    """ "GPU Utilization" and "Est. SM Efficiency" of TensorBoard's plugin for torch.profiler over time.

    Buckets are a power of ten microseconds long, as many as there are whole ones in the time recorded, at most 100; the last takes what is
    left over. The plugin draws SM efficiency at each change; here it is the mean of each bucket.
    """
    span = recorded_span(result)
    kernels = result.kernels
    if span is None or not len(kernels):
        return []
    edges = _edges(*span)
    start, end = edges[:-1], edges[1:]
    known = launch_sizes(result)
    length = (end - start - time_unobserved(result.metadata, start, end)).astype(np.float64)
    length[length <= 0] = np.nan
    out = []
    for device in np.unique(kernels["device"]).tolist():
        mine = kernels["device"] == device
        begins, ends = kernels["start"][mine], kernels["end"][mine]
        busy = time_within(union_of(begins, ends), start, end)
        size, filled = known.get(device), None
        if size is not None:
            parts = [*filled_sms(begins, ends, kernels["config"][mine], size)]
            time, level = (np.concatenate([part[i] for part in parts]) for i in range(2))
            filled = np.minimum(np.diff(_integral(time, level, edges)) / size.sms / length, 1.0)
        out.append(GpuSeries(device, start, end, np.minimum(busy / length, 1.0), filled))
    return out


def _edges(first: int, last: int) -> Int64:
    """Where buckets begin, and where the last ends, ns."""
    size = 1_000
    while last - first > MOST_BUCKETS * size:
        size *= 10
    count = max((last - first) // size, 1)
    edges: Int64 = np.r_[first + size * np.arange(count), max(last, first + 1)]
    return edges


def _integral(time: Int64, level: Int64, at: Int64) -> Float64:
    """Of a level that holds from each time to the next, over all time before each moment."""
    if not len(time):
        return np.zeros(len(at))
    until = np.r_[0.0, np.cumsum(level[:-1] * np.diff(time).astype(np.float64))]
    place = np.searchsorted(time, at, side="right") - 1
    inside = np.maximum(place, 0)
    return np.where(place >= 0, until[inside] + level[inside] * (at - time[inside]), 0.0)
