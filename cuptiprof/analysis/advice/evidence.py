"""What the rules of advice look at: a run, its time, and what several of them need, made when it is first asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, Intervals, sum_by_group
from cuptiprof.analysis.arrays.intervals import length, union_of_all
from cuptiprof.analysis.thresholds import MATTERS, Threshold
from cuptiprof.analysis.utilization.gpu_idle import GpuIdle, gpu_idle
from cuptiprof.analysis.utilization.timeline import recorded_span, work_by_kind
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.analysis.work.gpu_work import NameIds, kernel_names
from cuptiprof.analysis.work.tensor_cores import on_tensor_cores
from cuptiprof.data.enums import KERNEL, LAUNCH
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


class Evidence:
    """Of a result whose work has times (``Result.timed``).

    Attributes:
        span: (first, last) time recorded, ns; None: nothing was. wall: the time between them.
        demangle: whether names of kernels are to be read by people.
    """

    def __init__(self, result: Result, demangle: bool = True) -> None:
        self.result = result
        self.demangle = demangle
        self.span = recorded_span(result)
        first, last = self.span or (0, 0)
        self.first, self.last, self.wall = first, last, last - first

    @property
    def gpus(self) -> int:
        """GPUs that worked."""
        return len(self.work)

    @property
    def is_counted(self) -> bool:
        """Launches were counted: they ran alone, and some of them several times."""
        return bool(np.isin(self.result.metric_ranges["kind"], (LAUNCH, KERNEL)).any())

    @property
    def of_wall(self) -> bool:
        """Shares are of the wall time; else of the time in which GPUs worked: where the rest is that of counting, or a simulated device's."""
        return not self.result.simulated and not self.is_counted

    @cached_property
    def whole(self) -> int:
        """Wall time of all GPUs that worked, ns; or that in which they did (``of_wall``)."""
        if self.of_wall:
            return self.wall * max(self.gpus, 1)
        return sum(length(union_of_all(list(work.values()))) for work in self.work.values())

    def share(self, time: float) -> float:
        """Percent of ``whole``."""
        return 100.0 * time / self.whole if self.whole else 0.0

    @cached_property
    def worked(self) -> int:
        """From the first work of each GPU to its last, ns, added up: what shares that thresholds are of are of."""
        if not self.of_wall:
            return self.whole
        parts = [[part for part in work.values() if len(part.start)] for work in self.work.values()]
        return sum(max(int(p.end[-1]) for p in of) - min(int(p.start[0]) for p in of) for of in parts)

    def exceeds(self, time: float, threshold: Threshold) -> bool:
        """Whether a time is at least a threshold of the time from first to last work, and matters beside the wall time."""
        return time > 0 and 100.0 * time >= threshold.value * self.worked and self.share(time) >= MATTERS.value

    @cached_property
    def work(self) -> dict[int, dict[str, Intervals]]:
        return work_by_kind(self.result, self.talk)

    @cached_property
    def idle(self) -> list[GpuIdle]:
        return gpu_idle(self.result)

    @cached_property
    def compute(self) -> int:
        """Time in which GPUs computed, ns: the most that all kernels can save."""
        return sum(length(work["compute"]) for work in self.work.values())

    @cached_property
    def talk(self) -> Array:
        """Mask of the kernels that communicate."""
        return communicating(self.result.kernels)

    @cached_property
    def kernel_ns(self) -> Int64:
        """Durations of kernels; 0 of those that communicate: their time is not theirs."""
        kernels = self.result.kernels
        lasted = np.maximum(kernels["end"] - kernels["start"], 0)
        return np.where(self.talk, 0, lasted) if self.talk.any() else lasted

    @cached_property
    def names(self) -> NameIds:
        return kernel_names(self.result.kernels, self.demangle)

    @cached_property
    def time_by_name(self) -> Int64:
        """Durations by number in ``names``, added up, ns; of kernels that communicate 0."""
        return sum_by_group(self.names.ids, self.kernel_ns, len(self.names.names))

    @cached_property
    def on_tensor_cores(self) -> Array:
        return on_tensor_cores(self.result)

    def bounded(self, time: float) -> int:
        """Time of kernels, which may run side by side, as time of GPUs: no more than they computed."""
        return min(int(time), self.compute)
