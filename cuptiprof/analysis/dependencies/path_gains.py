"""What would shorten a run: by how much, before something else than the critical path holds it up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.bisection import Sections
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.dependencies.critical_path import CriticalPath, PathKind
from cuptiprof.data.tables import Array

_NEVER = np.iinfo(np.int64).min
_FOREVER = np.iinfo(np.int64).max


def path_limits(path: CriticalPath) -> Int64:
    """Of each piece how much shorter the run could be at most if the piece took less time, however much less; ns.

    Where the path goes on because of the latest of several causes, another cause that came L earlier lets the path gain L and no more: from
    where the other one's own path leaves the critical path up to there. The least such L over a piece is its limit. Other causes are those of
    work (the work before it on its stream, an event, its launch), the thread that came to a waiting call, and whatever else ended last on a
    thread or a stream.
    """
    if not len(path):
        return np.zeros(0, np.int64)
    others = _others(path)
    first = np.searchsorted(path.start, others.since, side="left")
    after = np.searchsorted(path.end, others.until, side="right")
    some = first < after
    return _least(first[some], after[some], others.lead[some], len(path))


@dataclass(frozen=True)
class _Others:
    """Causes that were not the latest: from when to when on the path they matter, and by how much they came sooner; ns."""

    since: Int64
    until: Int64
    lead: Int64


def _others(path: CriticalPath) -> _Others:
    graph, joins = path.graph, _Joins(path)
    causes, work, waits = graph.causes, graph.work, graph.waits
    parts: list[tuple[Int64, Int64, Int64]] = []
    ran = path.work[path.kind == PathKind.WORK]
    at = causes.time[ran]
    for other, ended in causes.others:
        mine = (other[ran] >= 0) & (other[ran] != causes.work[ran])
        parts.append((joins.of_work(other[ran][mine]), at[mine], (at - ended[ran])[mine]))
    mine = (graph.lane[ran] >= 0) & ~causes.by_launch[ran]
    launch = graph.times.time[ran][mine]
    parts.append((joins.of_host(graph.lane[ran][mine], launch, graph.wait[ran][mine]), at[mine], at[mine] - launch))
    # The thread itself, where it waited.
    wait = match(path.call[path.kind == PathKind.SYNC], waits.call)
    came = waits.start[wait]
    parts.append(
        (
            joins.of_host(graph.wait_lane[wait], came, graph.last_wait(graph.wait_lane[wait], came)),
            waits.release[wait],
            waits.release[wait] - came,
        )
    )
    # Whatever else ended last.
    lanes = np.arange(len(graph.lanes))
    ended = graph.lanes.end
    parts.append(
        (joins.of_host(lanes, ended, graph.last_wait(lanes, ended)), np.full(len(lanes), graph.end), graph.end - ended)
    )
    if len(work.end):
        last = Sections(work.which, work.end, len(work.stream)).last(
            np.arange(len(work.stream)), np.full(len(work.stream), _FOREVER)
        )
        parts.append((joins.of_work(last), np.full(len(last), graph.end), graph.end - work.end[last]))
    return _Others(*(np.concatenate([part[i] for part in parts]) for i in range(3)))


class _Joins:
    """Until when what led to something lies on the critical path, ns."""

    def __init__(self, path: CriticalPath) -> None:
        self._graph = graph = path.graph
        host = path.kind == PathKind.HOST
        self._start, self._end = path.start[host], path.end[host]
        self._host = Sections(path.lane[host], self._start, len(graph.lanes))
        self._waited = np.zeros(len(graph.waits.work), bool)  # those that the path goes through
        self._waited[match(path.call[path.kind == PathKind.SYNC], graph.waits.call)] = True
        causes, work = graph.causes, graph.work
        count = len(work.start)
        on_path = path.kind == PathKind.WORK
        join = np.full(count, _NEVER)
        join[path.work[on_path]] = path.end[on_path]
        open_ = np.flatnonzero(causes.by_launch & (join == _NEVER))
        join[open_] = self._within(graph.lane[open_], causes.time[open_], graph.wait[open_])
        join[(join == _NEVER) & (graph.parent < 0)] = graph.begin
        # Of the rest it is that of what each waited for; steps double.
        to = np.where(join != _NEVER, np.arange(count), graph.parent)
        while len(open_ := np.flatnonzero(join[to] == _NEVER)):
            to[open_] = to[to[open_]]
        self._join = join[to] if count else join

    def of_work(self, work: Int64) -> Int64:
        """Of the end of works."""
        until: Int64 = np.minimum(self._join[work], self._graph.work.end[work])
        return until

    def of_host(self, lane: Int64, time: Int64, wait: Int64) -> Int64:
        """Of moments on lanes, with the last wait before each (-1: none)."""
        found = self._within(lane, time, wait)
        before = self._graph.released_by(wait)
        at_wait = (
            np.where(before >= 0, self.of_work(np.maximum(before, 0)), self._graph.begin)
            if len(self._join)
            else found * 0 + self._graph.begin
        )
        return np.where(found == _NEVER, at_wait, found)

    def _within(self, lane: Int64, time: Int64, wait: Int64) -> Int64:
        """Until when the host was on the path since it last waited (or that wait's return was); the smallest number: not at all."""
        graph = self._graph
        since, other = graph.since(wait)
        begins = np.minimum(graph.lanes.begin[lane], time) if len(graph.lanes) else since
        begin = np.where(other != lane, begins, since)
        out = np.full(len(lane), _NEVER)
        returned = wait >= 0
        returned[returned] = self._waited[wait[returned]]
        out[returned] = since[returned]
        for on, until, earliest in ((other, begin, since), (lane, time, begin)):
            place = self._host.last(on, until, before=True)
            there = np.flatnonzero(place >= 0)
            there = there[self._start[place[there]] >= earliest[there]]
            out[there] = np.minimum(self._end[place[there]], until[there])
        return out


def _least(first: Array, after: Array, value: Int64, count: int) -> Int64:
    """The least value of all ranges ``first:after`` that hold each place; the largest number where none does."""
    power = np.int64(np.floor(np.log2(np.maximum(after - first, 1))))
    out = np.full(count, _FOREVER)
    for level in range(int(power.max(initial=0)), -1, -1):
        mine = power == level
        np.minimum.at(out, first[mine], value[mine])  # each stands for 2**level places from its own on
        np.minimum.at(out, after[mine] - (1 << level), value[mine])
        if level:
            half = 1 << (level - 1)
            out[half:] = np.minimum(out[half:], out[:-half].copy())
    return out
