"""How well kernels used the SMs, as hardware counters say: occupancy, SMs that had work."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.data.result import Result

OCCUPANCY = {"achieved_occupancy": 1.0, "sm__warps_active.avg.pct_of_peak_sustained_active": 0.01}
"""Metric -> factor to get achieved occupancy as 0..1."""
SM_EFFICIENCY = {
    "sm_efficiency": 0.01,
    "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed": 0.01,
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed": 0.01,
}
"""Metric -> factor to get the share of SMs that had a warp, as 0..1."""


def measured(result: Result, metrics: Mapping[str, float]) -> Float64:
    """Of each kernel the first of these metrics that was counted on it, times its factor; NaN: none was."""
    kernels = result.kernels
    out = np.full(len(kernels), np.nan)
    for metric, factor in metrics.items():
        if metric in result.counters:
            out = np.where(np.isnan(out), factor * result.counters.of_kernels(kernels, metric), out)
    return out
