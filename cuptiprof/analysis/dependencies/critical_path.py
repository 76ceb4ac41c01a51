"""The critical path of a run: from its end back to its begin, at each moment what the next thing waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.dependencies.path_graph import PathGraph
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


class PathKind(IntEnum):
    """What a piece of the path is."""

    HOST = 0
    """a thread of the host: in an operator, a call, or in nothing that was recorded"""
    LAUNCH = 1
    """from the start of a launching call to the start of the work"""
    WORK = 2
    """a kernel, copy, set or graph"""
    GAP = 3
    """between the end of a piece of work and the start of the one that waited for it on the GPU"""
    SYNC = 4
    """from the end of a piece of work to the return of the call that waited for it"""
    UNKNOWN = 5
    """before a piece of work of which nobody knows what it waited for"""


@dataclass(frozen=True)
class CriticalPath:
    """Pieces in the order of time; each begins where the one before ends. Columns of one length.

    Attributes:
        kind: PathKind.
        start, end: ns, run clock.
        work: index in ``graph.work`` of the work that ran, was launched, came after the gap, or had ended; -1: HOST.
        call: row in ``api_calls`` of the call that waited (SYNC); -1: else.
        lane: of a HOST piece, in ``graph.lanes``; -1: else.
    """

    kind: Int64
    start: Int64
    end: Int64
    work: Int64
    call: Int64
    lane: Int64
    graph: PathGraph

    def __len__(self) -> int:
        return len(self.kind)


def critical_path(result: Result) -> CriticalPath:
    """Of a result whose work has times (``Result.timed``): what the whole time went to, each moment once.

    The path begins with what ended last: work of a GPU or a thread of the host. Backwards, a piece of work began when the latest of its causes
    was there (``work_causes``): the work before it on its stream, an event that its stream waited for, the start of its launching call.
    From a launching call the path follows the thread back to the last call that waited for a GPU (``host_waits``), and from there the
    work that this waited for. A thread that began after another is followed back to its begin, then the one that began first.

    HTA's critical path (``CriticalPathAnalysis``) is the path of the most weight through a graph of the same causes. It gives no weight to
    what a thread does between its outermost operators nor to calls that wait, may end before the run does, and leaves its GPU path where
    a queue was longer than one launch.
    """
    return _Walk(PathGraph(result)).path()


class _Walk:
    def __init__(self, graph: PathGraph) -> None:
        self.graph, self.work, self.waits, self.causes, self.lanes = (
            graph,
            graph.work,
            graph.waits,
            graph.causes,
            graph.lanes,
        )
        self.pieces: list[tuple[Array, ...]] = []

    def path(self) -> CriticalPath:
        chain, until = self.last()
        if chain >= 0:
            self.emit(_chain(self.graph.parent, chain), until)
        kind, start, end, of_work, call, lane = (
            np.concatenate([piece[i] for piece in self.pieces]) if self.pieces else np.zeros(0, np.int64)
            for i in range(6)
        )
        some = np.flatnonzero(end > start)
        some = some[np.argsort(start[some], kind="stable")]
        return CriticalPath(kind[some], start[some], end[some], of_work[some], call[some], lane[some], self.graph)

    def last(self) -> tuple[int, int]:
        """The work that the path ends with (-1: none), and until when it counts; what the host did after it is a piece."""
        work, lanes = self.work, self.lanes
        latest = int(np.argmax(work.end)) if len(work.end) else -1
        if latest >= 0 and (not len(lanes) or work.end[latest] >= lanes.end.max()):
            return latest, int(work.end[latest])
        if not len(lanes):
            return -1, 0
        lane, end = np.array([np.argmax(lanes.end)]), np.array([lanes.end.max()])
        wait = self.graph.last_wait(lane, end)
        self.host(lane, end, wait)
        if wait[0] < 0:
            return -1, 0
        return int(self.waits.work[wait[0]]), int(self.waits.release[wait[0]])

    def host(self, lane: Int64, until: Int64, wait: Int64) -> None:
        """Pieces of a lane from a wait (or from the begin) to a time, and of the wait's return."""
        since, other = self.graph.since(wait)
        turn = np.where(other != lane, np.clip(self.lanes.begin[lane], since, until), since)
        none = np.full(len(wait), -1, np.int64)
        self.add(PathKind.HOST, turn, until, none, none, lane)
        self.add(PathKind.HOST, since, turn, none, none, other)
        there, waits = wait[wait >= 0], self.waits
        none = there * 0 - 1
        self.add(PathKind.SYNC, waits.release[there], waits.end[there], waits.work[there], waits.call[there], none)

    def emit(self, chain: Int64, last_until: int) -> None:
        """Pieces of a chain of work, the last one first."""
        work, causes = self.work, self.causes
        launched_by_host = causes.by_launch[chain]
        wait = self.graph.wait[chain]
        released = np.where(wait >= 0, self.waits.release[wait], 0) if len(self.waits.work) else chain * 0
        until = np.r_[last_until, np.where(launched_by_host, released, causes.time[chain])[:-1]]
        none = np.full(len(chain), -1, np.int64)
        start = work.start[chain]
        self.add(PathKind.WORK, start, until, chain, none, none)
        by_work = causes.work[chain] >= 0
        for kind, mask, since in (
            (PathKind.LAUNCH, launched_by_host, causes.time[chain]),
            (PathKind.GAP, by_work, causes.time[chain]),
            (PathKind.UNKNOWN, ~launched_by_host & ~by_work, np.full(len(chain), self.graph.begin)),
        ):
            self.add(kind, since[mask], start[mask], chain[mask], none[mask], none[mask])
        mine = chain[launched_by_host]
        self.host(self.graph.lane[mine], causes.time[mine], self.graph.wait[mine])

    def add(self, kind: PathKind, start: Int64, end: Int64, work: Int64, call: Int64, lane: Int64) -> None:
        self.pieces.append((np.full(len(start), kind, np.int64), start, end, work, call, lane))


def _chain(parent: Int64, last: int) -> Int64:
    """The last place and what is before it, one after the other: as many steps as the path has pieces of work."""
    before: Sequence[int] = memoryview(np.ascontiguousarray(parent))  # type: ignore[arg-type]
    out = []
    while last >= 0:
        out.append(last)
        last = before[last]
    return np.array(out, np.int64)
