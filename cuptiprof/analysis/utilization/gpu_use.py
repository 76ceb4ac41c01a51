"""How well each GPU that ran kernels was used: TensorBoard's estimates, and beside them what counters measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.measured_use import OCCUPANCY, SM_EFFICIENCY, measured
from cuptiprof.analysis.utilization.gpu_figures import gpu_figures
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class GpuUse:
    """Of one GPU, percent; None: not known.

    Attributes:
        utilisation_pct, sm_efficiency_pct, occupancy_pct: those of ``gpu_figures``, the last two estimated from launches.
        measured_sm_efficiency_pct, measured_occupancy_pct: means over the kernels on which they were counted, weighted by duration.
    """

    device: int
    utilisation_pct: float | None
    sm_efficiency_pct: float | None
    measured_sm_efficiency_pct: float | None
    occupancy_pct: float | None
    measured_occupancy_pct: float | None


def gpu_use(result: Result) -> list[GpuUse]:
    """Of each GPU that ran a kernel."""
    kernels = result.kernels
    counted = [
        measured(result, metrics) if len(result.metric_ranges) else None for metrics in (SM_EFFICIENCY, OCCUPANCY)
    ]
    out = []
    for figures in gpu_figures(result):
        mine = kernels["device"] == figures.device
        if not mine.any():
            continue
        sms, occupancy = (None if values is None else _mean(values, mine, result) for values in counted)
        out.append(
            GpuUse(
                device=figures.device,
                utilisation_pct=None if figures.utilisation is None else 100 * figures.utilisation,
                sm_efficiency_pct=None if figures.sm_efficiency is None else 100 * figures.sm_efficiency,
                measured_sm_efficiency_pct=sms,
                occupancy_pct=figures.occupancy,
                measured_occupancy_pct=occupancy,
            )
        )
    return out


def _mean(values: Float64, mine: Array, result: Result) -> float | None:
    rows = np.flatnonzero(mine & np.isfinite(values))
    weights = result.kernels["end"][rows] - result.kernels["start"][rows]
    return 100 * float(np.average(values[rows], weights=weights)) if weights.sum() > 0 else None
