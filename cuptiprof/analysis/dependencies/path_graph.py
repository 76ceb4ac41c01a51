"""What waits for what in a run: work of the GPUs, and threads of the host that launch it and wait for it."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.bisection import Sections
from cuptiprof.analysis.dependencies.host_lanes import HOST_TABLES, host_lanes
from cuptiprof.analysis.dependencies.host_waits import host_waits, launched
from cuptiprof.analysis.dependencies.work_causes import work_causes
from cuptiprof.analysis.work.stream_work import stream_work
from cuptiprof.data.result import Result


class PathGraph:
    """Of a result whose work has times (``Result.timed``).

    Attributes:
        work, times, causes: of the pieces of GPU work (``StreamWork``, ``Launched``, ``WorkCauses``).
        lanes, waits, wait_lane: threads of the host, their calls that waited, and the lane of each.
        main: the lane that began first; -1: there is none.
        begin, end: of all of it, ns.
        lane: of the launch of each piece of work; -1: not known.
        wait: the last wait that had returned on that lane when it was launched; -1: none.
        parent: the work that each piece waited for, be it through the host; -1: none. It is before in order of start.
    """

    def __init__(self, result: Result) -> None:
        self.work = work = stream_work(result)
        self.times = times = launched(result, work)
        self.waits = waits = host_waits(result, work, times)
        self.causes = causes = work_causes(result, work, times)
        known = times.call >= 0
        thread = result.api_calls["thread"][times.call[known]].astype(np.int64)
        self.lanes = lanes = host_lanes(result, np.concatenate([thread, waits.thread]))
        if not len(work.start) and not len(lanes):
            everything = np.concatenate([result.tables[name]["thread"] for name in HOST_TABLES])
            self.lanes = lanes = host_lanes(result, everything)
        self.wait_lane = lanes.of(waits.thread)
        self._by_lane = Sections(self.wait_lane, waits.end, len(lanes))
        self.main = int(np.argmin(lanes.begin)) if len(lanes) else -1
        self.begin = min((int(each.min()) for each in (lanes.begin, work.start) if len(each)), default=0)
        self.end = max((int(each.max()) for each in (lanes.end, work.end) if len(each)), default=0)
        self.lane = np.full(len(work.start), -1, np.int64)
        self.lane[known] = lanes.of(thread)
        wait = self.last_wait(self.lane, times.time)
        before = self.released_by(wait)
        place = np.arange(len(before))
        if len(place):
            sooner = (work.start[before] < work.start) | ((work.start[before] == work.start) & (before < place))
            wait = np.where((before >= 0) & ~sooner, -1, wait)
            before = np.where(sooner, before, -1)
        self.wait = wait
        self.parent = np.where(causes.by_launch, before, causes.work)

    def last_wait(self, lane: Int64, time: Int64) -> Int64:
        """The last wait that had returned by a time on a lane, or, if that lane had none, on the first one when it began; -1: none."""
        found = self._by_lane.last(lane, time)
        none = np.flatnonzero((found < 0) & (lane >= 0) & (lane != self.main))
        main = np.full(len(none), self.main)
        found[none] = self._by_lane.last(main, np.minimum(self.lanes.begin[lane[none]], time[none]))
        return found

    def released_by(self, wait: Int64) -> Int64:
        """The work that each wait (-1: none) waited for; -1: none."""
        return np.where(wait >= 0, self.waits.work[wait], -1) if len(self.waits.work) else np.full(len(wait), -1)

    def since(self, wait: Int64) -> tuple[Int64, Int64]:
        """From when the host ran without waiting: the return of each wait (the begin of all: none), ns, and on which lane that was."""
        if not len(self.waits.work):
            return np.full(len(wait), self.begin), np.full(len(wait), self.main)
        there = wait >= 0
        return np.where(there, self.waits.end[wait], self.begin), np.where(there, self.wait_lane[wait], self.main)
