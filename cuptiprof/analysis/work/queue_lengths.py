"""How many launches wait in the queue of each stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, stable_order
from cuptiprof.analysis.arrays.point_summary import PointSummary, summary_of
from cuptiprof.analysis.work.launch_statistics import launches
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result

FULL = 1024
"""Launches that a stream's queue holds before the next call blocks, as HTA has it (CUDA does not say)."""


@dataclass(frozen=True)
class QueueLength:
    """Of one stream: a step function, and what it comes to.

    Attributes:
        time, length: int64 arrays of one length: from each time (ns) on, so many launches were in the queue.
        points: statistics of ``length``.
        blocked: time with ``FULL`` launches or more, ns.
    """

    device: int
    stream: int
    time: Int64
    length: Int64
    points: PointSummary
    blocked: int


def queue_lengths(result: Result, full: int = FULL) -> list[QueueLength]:
    """Of each stream to which something was launched: HTA's ``get_queue_length_time_series`` and its summaries.

    A launch is in the queue from the start of its call to the start of its work. Launches are those of
    ``launch_statistics.launches``. Of changes at one time launches come first, and work that seems to begin before
    its call (clocks of host and GPU agree to microseconds) is there for no time: no queue is ever shorter than nothing, which
    HTA's is.
    """
    found = launches(result)
    if not len(found):
        return []
    streams, which = distinct_rows(found.device, found.stream)
    time = np.concatenate([found.called, np.maximum(found.began, found.called)])
    change = np.repeat(np.array([1, -1]), len(found))
    order = np.argsort(time, kind="stable")
    which = np.concatenate([which, which])
    order = order[stable_order(which[order])]
    which, time = which[order], time[order]
    length = np.cumsum(change[order])  # of each stream the changes add up to nothing: the next one begins at 0
    ends = np.flatnonzero(np.r_[which[1:] != which[:-1], True]) + 1
    out = []
    for (device, stream), first, after in zip(streams.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        mine, lasted = length[first:after], np.diff(time[first:after])
        blocked = int(lasted[mine[:-1] >= full].sum())
        out.append(QueueLength(device, stream, time[first:after], mine, summary_of(mine), blocked))
    return out
