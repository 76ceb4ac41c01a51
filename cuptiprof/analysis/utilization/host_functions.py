"""What the host did while the GPUs worked, and while none did: samples of another tool, beside the work of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.intervals import length, union_of_all
from cuptiprof.analysis.utilization.run_samples import NO_STACK, of_process, within
from cuptiprof.analysis.utilization.timeline import work_by_kind
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.host_samples import HostSamples
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HostFunctions:
    """Numbers of samples by function of the host, one entry a function.

    Attributes:
        function: names. self_idle, total_idle: samples in the function itself, and in it or what it called, while no GPU worked.
        self_busy, total_busy: the same while any did.
        idle, busy: samples in all. idle_ns, busy_ns: the time they stand for, from the first work of a GPU to the end of the last.
        elsewhere: samples before and after that, or while the session was paused. others: of other processes.
    """

    function: list[str]
    self_idle: Int64
    total_idle: Int64
    self_busy: Int64
    total_busy: Int64
    idle: int
    busy: int
    idle_ns: int
    busy_ns: int
    elsewhere: int
    others: int


def host_functions(result: Result, samples: HostSamples) -> HostFunctions:
    """By function; the run's clock is CLOCK_MONOTONIC, and so must be that of the samples.

    The samples of a run's process are counted; where the file does not tell processes apart, all.

    Raises:
        ResultError: the run has no work with times, or no sample lies between its first and its last.
    """
    work = [busy for kinds in work_by_kind(result).values() for busy in kinds.values()]
    merged = union_of_all(work) if work else None
    if merged is None or not len(merged.start):
        raise ResultError("the run has no work of a GPU with times, beside which samples could be put")
    first, last = int(merged.start[0]), int(merged.end[-1])
    mine = of_process(result, samples)
    rows = within(mine, samples, first, last)
    rows[rows] = time_unobserved(result.metadata, samples.time[rows], samples.time[rows] + 1) == 0
    time, stack = samples.time[rows], samples.stack[rows]
    busy = merged.end[np.maximum(np.searchsorted(merged.start, time, side="right") - 1, 0)] > time
    by_stack = [np.bincount(stack[of] + 1, minlength=len(samples.stacks) + 1) for of in (~busy, busy)]
    counts = np.zeros((4, len(samples.functions) + 1), np.int64)  # self and total, idle and busy; the last: no stack
    for at in np.flatnonzero(by_stack[0] + by_stack[1]).tolist():
        frames = samples.stacks[at - 1] if at else (len(samples.functions),)
        for which, of in enumerate(by_stack):
            counts[2 * which, frames[0]] += of[at]
            counts[2 * which + 1, list(set(frames))] += of[at]
    named = np.flatnonzero(counts.any(axis=0))
    functions = (*samples.functions, NO_STACK)
    worked = length(merged)
    paused = int(time_unobserved(result.metadata, np.array([first]), np.array([last]))[0])
    return HostFunctions(
        [functions[i] for i in named.tolist()],
        self_idle=counts[0, named],
        total_idle=counts[1, named],
        self_busy=counts[2, named],
        total_busy=counts[3, named],
        idle=int((~busy).sum()),
        busy=int(busy.sum()),
        idle_ns=max(last - first - worked - paused, 0),
        busy_ns=worked,
        elsewhere=int(mine.sum() - rows.sum()),
        others=int((~mine).sum()),
    )
