"""Why the streams of a GPU were idle between two pieces of work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import latest_so_far, sum_by_group
from cuptiprof.analysis.arrays.intervals import time_within
from cuptiprof.analysis.utilization.timeline import host_time
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.analysis.work.stream_work import stream_work
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result

CATEGORIES = ("host_wait", "kernel_wait", "other")
CONSECUTIVE_NS = 30_000
"""HTA's ``consecutive_kernel_delay``: 30, said to be ns, compared with microseconds."""


@dataclass(frozen=True)
class IdleCause:
    """Idle time of one stream of one cause, ns.

    Attributes:
        ratio: share of the idle time of the stream, 0..1; None where it was never idle.
        sync: part of ``idle`` in which a thread of the host waited for the GPU (cudaStreamSynchronize and the like), which
            lies beside the three categories: host_wait with much of it is a host that waits before it launches.
            None: no calls were recorded.
        gaps: pieces of work with something before them on their stream, of this category (whose idle time may be 0).
        unknown: those of them whose launch was not recorded, and which therefore cannot be host_wait.
    """

    device: int
    stream: int
    category: str
    idle: int
    ratio: float | None
    sync: int | None
    gaps: int
    unknown: int


def idle_causes(result: Result, consecutive: int = CONSECUTIVE_NS) -> list[IdleCause]:
    """By stream and category, where a category has any work: HTA's ``get_idle_time_breakdown``.

    The idle time before a piece of work, from the end of what ran on its stream before it, is

    * host_wait, if its launch call began after that end: the host was late;
    * else kernel_wait, if it is shorter than ``consecutive`` (ns): what it takes to begin the next kernel;
    * else other: work of another stream, an event, the GPU itself.

    The first work of a stream has none, and counts as "other" with time 0. HTA takes the end of the previous row, here it is the
    latest end so far, so that work that overlaps on a stream makes no negative idle time.
    """
    work = stream_work(result)
    if not len(work.start):
        return []
    first = work.is_first
    reach = latest_so_far(work.which, work.end)
    before = np.where(first, work.start, np.r_[work.start[:1], reach[:-1]])
    before = np.minimum(before, work.start)
    gap = work.start - before
    gap[time_unobserved(result.metadata, before, work.start) > 0] = 0  # nobody knows what ran then
    calls = calls_of(result.api_calls, work.correlation)
    known = calls >= 0
    launched = (
        result.api_calls["start"][np.maximum(calls, 0)] if len(result.api_calls) else np.zeros(len(gap), np.int64)
    )
    late = known & (launched > np.r_[work.start[:1], reach[:-1]]) & ~first
    category = np.where(late, 0, np.where((gap < consecutive) & ~first, 1, 2))

    streams, kinds = len(work.stream), len(CATEGORIES)
    group = work.which * kinds + category
    idle = sum_by_group(group, gap, streams * kinds)
    waits, recorded = host_time(result)
    sync = sum_by_group(group, time_within(waits, before, work.start), streams * kinds)
    count = np.bincount(group, minlength=streams * kinds)
    gaps = np.bincount(group[~first], minlength=streams * kinds)
    unknown = np.bincount(group[~known & ~first], minlength=streams * kinds)
    whole = idle.reshape(streams, kinds).sum(axis=1)
    out = []
    for i in np.flatnonzero(count).tolist():
        stream, kind = divmod(i, kinds)
        total = int(whole[stream])
        out.append(
            IdleCause(
                device=int(work.device[stream]),
                stream=int(work.stream[stream]),
                category=CATEGORIES[kind],
                idle=int(idle[i]),
                ratio=int(idle[i]) / total if total else None,
                sync=int(sync[i]) if len(recorded.start) else None,
                gaps=int(gaps[i]),
                unknown=int(unknown[i]),
            )
        )
    return out
