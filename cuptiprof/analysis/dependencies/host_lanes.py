"""Threads of the host that gave the GPUs work or waited for them, as lanes: in each one thing comes after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, group_stats
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.data.codes import distinct, renumbered
from cuptiprof.data.result import Result

HOST_TABLES = ("operators", "regions", "api_calls")
_OF_ENGINE = 0.9
"""A thread of which this share of all operators is backward's belongs to the autograd engine."""


@dataclass(frozen=True)
class HostLanes:
    """Lanes by their threads.

    Attributes:
        thread: system thread IDs, ascending. lane: of each of them.
        begin, end: first and last thing that a lane did, ns; one entry a lane.
    """

    thread: Int64
    lane: Int64
    begin: Int64
    end: Int64

    def __len__(self) -> int:
        return len(self.begin)

    def of(self, thread: Int64) -> Int64:
        """Lane of each thread; -1: none."""
        if not len(self.thread):
            return np.full(len(thread), -1, np.int64)
        at = np.minimum(np.searchsorted(self.thread, thread), len(self.thread) - 1)
        return np.where(self.thread[at] == thread, self.lane[at], -1)


def host_lanes(result: Result, threads: Int64) -> HostLanes:
    """Lanes of the given threads.

    Those of PyTorch's autograd engine are one lane with the thread that ran most other operators, which calls backward and waits for them. (So
    they are for HTA, where there is one of each.)
    """
    operators = result.operators
    thread, which = renumbered(operators["thread"])
    all_of, of_backward = (
        np.bincount(which[mask], minlength=len(thread)) for mask in (slice(None), operators["backward"] == 1)
    )
    of_engine = (of_backward > 0) & (of_backward >= _OF_ENGINE * all_of)
    others = np.where(of_engine, 0, all_of - of_backward)
    caller = int(thread[np.argmax(others)]) if others.any() else -1
    threads = distinct(threads)
    engine = np.isin(threads, thread[of_engine]) if caller >= 0 else np.zeros(len(threads), bool)
    if engine.any() and caller not in threads:
        threads, engine = np.r_[threads, caller], np.r_[engine, False]
        threads, engine = threads[np.argsort(threads)], engine[np.argsort(threads)]
    stands = np.where(engine, caller, threads)
    number = renumbered(stands)[1].astype(np.int64)
    begin, end = _spans(result, threads, number)
    return HostLanes(threads, number, begin, end)


def _spans(result: Result, threads: Int64, lane: Int64) -> tuple[Int64, Int64]:
    lanes = int(lane.max(initial=-1)) + 1
    begin, end = np.full(lanes, np.iinfo(np.int64).max), np.full(lanes, np.iinfo(np.int64).min)
    for name in HOST_TABLES:
        table = result.tables[name]
        at = match(table["thread"], threads)
        on = lane[at[at >= 0]]
        starts, ends = (group_stats(on, table[column][at >= 0]) for column in ("start", "end"))
        begin[starts.key] = np.minimum(begin[starts.key], starts.minimum)
        end[ends.key] = np.maximum(end[ends.key], ends.maximum)
    return begin, np.maximum(begin, end)
