"""What befell the GPUs in each training step, against the run's other steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.thresholds import HELD, THROTTLED
from cuptiprof.analysis.training_steps.step_spans import StepSpans
from cuptiprof.analysis.utilization.system_events import SystemEvent, gpu_readings
from cuptiprof.data.clock_state import HOLDS
from cuptiprof.data.result import Result

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepClocks:
    """One entry a step, float64.

    Attributes:
        of_median: its time, part of the median step's.
        held: what holds clocks -> part of the step in which it did, 0..1, on the GPU on which it was longest.
        clock: mean SM clock, part of its median over the steps, on the GPU on which that is lowest; nan: not read.
        errors: what else there was -> how often in the step, on all GPUs.
    """

    of_median: Float64
    held: dict[str, Float64]
    clock: Float64
    errors: dict[str, npt.NDArray[np.int64]]

    def remark(self, step: int) -> str:
        """ "1.62 x the median; power cap 80 % of it; SM clock 62 % of its usual"; empty: nothing held its clocks, nothing happened."""
        parts = [
            f"{kind} {100 * held[step]:.0f} % of it"
            for kind, held in self.held.items()
            if 100 * held[step] >= HELD.value
        ]
        slower = self.clock[step] <= 1 - THROTTLED.value / 100
        parts += [f"SM clock {100 * self.clock[step]:.0f} % of its usual"] if slower else []
        parts += [f"{kind} ({count[step]:,})" for kind, count in self.errors.items() if count[step]]
        return "; ".join([f"{self.of_median[step]:.2f} x the median", *parts]) if parts else ""


def step_clocks(result: Result, steps: StepSpans) -> StepClocks | None:
    """None: there are no steps, or no readings of a GPU."""
    gpus = gpu_readings(result) if len(steps) else []
    if not gpus:
        return None
    took = np.maximum(steps.end - steps.start, 1).astype(np.float64)
    held: dict[str, Float64] = {}
    errors: dict[str, npt.NDArray[np.int64]] = {}
    clock = np.full(len(steps), np.nan)
    for gpu in gpus:
        for kind in HOLDS.values():
            share = gpu.share(kind, steps.start, steps.end)
            if share.any():
                held[kind] = np.maximum(held.get(kind, 0.0), share)
        means = gpu.clock.mean(steps.start, steps.end)
        if np.isfinite(means).any():
            clock = np.fmin(clock, means / np.nanmedian(means))
        for event in gpu.events():
            if not event.is_hold:
                count = errors.setdefault(event.kind, np.zeros(len(steps), np.int64))
                count[steps_of(event, steps)] += 1
    return StepClocks(took / np.median(took), held, clock, errors)


def steps_of(event: SystemEvent, steps: StepSpans) -> Int64:
    """Rows of the steps in which an event was: in more than the little that readings may be wrong by."""
    shared = np.minimum(steps.end, event.until) - np.maximum(steps.start, event.start)
    least = np.minimum(steps.end - steps.start, event.until - event.start) * (HELD.value / 100)
    found: Int64 = np.flatnonzero((shared > 0) & (shared >= least))
    return found
