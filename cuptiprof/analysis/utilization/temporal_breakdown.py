"""How long each GPU computed, did something else, or nothing: from its first work to its last."""

from __future__ import annotations

from dataclasses import dataclass

from cuptiprof.analysis.arrays.intervals import length, union_of_all
from cuptiprof.analysis.utilization.timeline import work_by_kind
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result


@dataclass(frozen=True)
class Temporal:
    """Of one GPU, ns: ``kernel = idle + compute + non_compute``, from the start of its first work to the end of its last,
    without what was not observed (``data/coverage.py``).

    ``compute`` is the time in which at least one kernel computed, ``non_compute`` that in which only communication,
    copies and sets ran.
    """

    device: int
    idle: int
    compute: int
    non_compute: int
    kernel: int


def temporal_breakdown(result: Result) -> list[Temporal]:
    """Of each GPU that worked, by its number: HTA's ``get_temporal_breakdown``.

    Work that overlaps counts once. HTA adds the rows of ``cuda_sync`` that name a stream to what a GPU does; waits are no
    work here. It also takes all GPUs of a file as one, and leaves out what the last ``ProfilerStep`` launched unless it is
    told otherwise (``include_last_profiler_step=True``).
    """
    out = []
    for device, work in work_by_kind(result).items():
        busy = union_of_all(list(work.values()))
        blind = int(time_unobserved(result.metadata, busy.end[:-1], busy.start[1:]).sum())
        kernel, compute = int(busy.end[-1] - busy.start[0]) - blind, length(work["compute"])
        idle = kernel - length(busy)
        out.append(Temporal(device, idle, compute, kernel - compute - idle, kernel))
    return out
