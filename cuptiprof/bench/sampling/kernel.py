"""Time of the GPU's own work, from its activity records.

Work belongs to a call by the correlation of its launch, never by when it ran: launches of other threads are not counted, and gaps
that the host leaves are not in the time. It fails closed: where a launch has no record, no sample of its session is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cuptiprof._core import region
from cuptiprof.bench.sampling.clock_stamps import ClockStamps
from cuptiprof.bench.sampling.strategy import MeasuredCall, Sample, Strategy, Tick, before_sample, orders
from cuptiprof.data.result import Result
from cuptiprof.device.gpu import Meter
from cuptiprof.errors import BenchError
from cuptiprof.session.profile import profile

OWN_REGION_PREFIX = "cuptiprof.bench:"
"""of the names of the harness's own regions"""
BETWEEN_SAMPLES = f"{OWN_REGION_PREFIX}between"
"""Region of what is done between samples: set-up, cold caches."""
RECORD_STEPS_NS = (1000.0, 32.0)
"""Steps in which chips have been seen to stamp activity records: 32 ns (V100, A100; rounded to ns, so one off), and us of old ones."""
SIMULATED_STEP_NS = 1.0
MIN_ON_STEP = 0.9
"""Share of the durations that are multiples of a step where that is the clock's."""
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}  # CUpti_ActivityMemcpyKind


@dataclass(frozen=True)
class Kernel(Strategy):
    """Sum of the times of a call's kernels, copies and sets; with ``span=True`` the time from the first start to the last end.

    Both are kept; this says which one is the sample. The sum leaves out gaps and counts work that overlaps twice.
    """

    span: bool = False
    name: ClassVar[str] = "kernel"

    def rounds(
        self, gpu: Meter, calls: Sequence[MeasuredCall], count: int, cold: bool, tick: Tick
    ) -> list[list[Sample]]:
        starts: list[list[tuple[int, int]]] = [[] for _ in calls]
        stamps, taken = ClockStamps(gpu, count * len(calls), max(c.streams for c in calls)), 0
        session = profile(device=gpu.device, activities=["kernel", "memcpy", "memset"], keep="first")
        between = any(c.setup is not None for c in calls) or cold or len(calls) > 1
        with session:
            for order in orders(len(calls), count):
                tick()
                for i in order:
                    call = calls[i]
                    with region(BETWEEN_SAMPLES):
                        if between:
                            before_sample(gpu, call, cold, len(calls) > 1)
                        stamps.before_sample(call.longest_ns)
                    starts[i].append((gpu.now(), taken))
                    taken += 1
                    with region(call.label):
                        call.function()
            with region(BETWEEN_SAMPLES):
                stamps.after_last()
            gpu.synchronize()
        clocks = stamps.rates().tolist()
        work = Work(session.result())
        step = SIMULATED_STEP_NS if gpu.device is not None and gpu.device.simulated else work.step_ns()
        for call in calls:
            call.step_ns = min(step, call.step_ns or step)  # what one block shows by chance another refutes
        lost = session.result().losses
        doubt = f"records lost ({lost.line()[6:]})" if lost else ""
        return [
            self._samples(work, c, [(at, clocks[number]) for at, number in begun], doubt)
            for c, begun in zip(calls, starts, strict=True)
        ]

    def _samples(self, work: Work, call: MeasuredCall, starts: list[tuple[int, float]], doubt: str) -> list[Sample]:
        instances = work.instances(call.label)
        if len(instances) != len(starts):
            # A call's own entry was lost, so which is which is not known.
            return [Sample(math.nan, at, doubt=doubt or "regions lost") for at, _ in starts]
        out = []
        for instance, (at, sm_hz) in zip(instances, starts, strict=True):
            total, span, pieces = work.of(int(instance))
            out.append(Sample(span if self.span else total, at, span, pieces, doubt, sm_hz=sm_hz))
        return out


class Work:
    """The GPU work of a session by the outermost region it was launched in."""

    def __init__(self, result: Result) -> None:
        result = result.timed()  # what had no times is among the losses, and the samples doubtful
        regions = result.regions
        self._instances = np.asarray(regions["instance"], np.int64)
        self._names = regions["name"]
        self._parents = np.asarray(regions["parent"], np.int64)
        parts = [
            (np.asarray(t["region_instance"], np.int64), np.asarray(t["start"], np.int64), np.asarray(t["end"], np.int64))
            for t in (result.kernels, result.memcpys, result.memsets)
        ]  # fmt: skip
        inner, self._start, self._end = (np.concatenate([p[i] for p in parts]) for i in range(3))
        kinds = [f"[memcpy {_COPIES.get(int(k), 'other')}]" for k in result.memcpys["copy_kind"]]
        self._names_of_work = [*result.kernels["name"], *kinds, *["[memset]"] * len(result.memsets)]
        tops = self._outermost()
        outer = tops[np.where(inner < len(tops), inner, 0)]  # a region whose own row was lost counts as none
        self._order = np.lexsort((self._start, outer))
        self._outer = outer[self._order]
        own = [i for i, n in zip(self._instances, self._names, strict=True) if n.startswith(OWN_REGION_PREFIX)]
        self.outside = int((~np.isin(outer, own)).sum())
        """executions launched outside of the harness's regions: by threads that are not the function's"""

    def step_ns(self) -> float:
        """Of the clock that stamps the records, as their durations show it; 1 where they show none."""
        took = (self._end - self._start)[self._end > self._start]
        for step in RECORD_STEPS_NS if took.size else ():
            if np.mean(np.abs(took - step * np.rint(took / step)) <= 1) >= MIN_ON_STEP:
                return step
        return 1.0

    def _outermost(self) -> npt.NDArray[np.int64]:
        """Region instance -> its outermost enclosing one; 0 -> 0."""
        size = int(self._instances.max(initial=0)) + 1
        parent = np.zeros(size, np.int64)
        parent[self._instances] = self._parents
        top = np.arange(size)
        while True:
            up = np.where(parent[top] > 0, parent[top], top)
            if (up == top).all():
                return top
            top = up

    def instances(self, label: str) -> npt.NDArray[np.int64]:
        """Outermost regions of this name, in the order they were entered."""
        mask = np.array([n == label for n in self._names], bool) & (self._parents == 0)
        return np.sort(self._instances[mask])

    def of(self, instance: int) -> tuple[float, float, tuple[tuple[str, int, float], ...]]:
        """(sum, span, pieces) of one region, ns; a call without work has 0, 0, ()."""
        low, high = np.searchsorted(self._outer, [instance, instance + 1])
        rows = self._order[low:high]
        if not len(rows):
            return 0.0, 0.0, ()
        start, end = self._start[rows], self._end[rows]
        pieces: dict[str, tuple[int, float]] = {}
        for row, took in zip(rows, (end - start).tolist(), strict=True):
            n, ns = pieces.get(self._names_of_work[row], (0, 0.0))
            pieces[self._names_of_work[row]] = n + 1, ns + took
        total = float((end - start).sum())
        return total, float(end.max() - start.min()), tuple((name, n, ns) for name, (n, ns) in pieces.items())


def inspect(gpu: Meter, call: MeasuredCall) -> tuple[Work, Result]:
    """The GPU work of one call.

    Raises:
        BenchError: records were lost.
    """
    session = profile(device=gpu.device, activities=["kernel", "memcpy", "memset", "sync"])
    with session:
        if call.setup is not None:
            with region(BETWEEN_SAMPLES):
                call.setup()
        with region(call.label):
            call.function()
        gpu.synchronize()
    result = session.result()
    if result.losses:
        raise BenchError(f"one call of {call.name!r} could not be traced completely: {result.losses.line()}")
    return Work(result), result
