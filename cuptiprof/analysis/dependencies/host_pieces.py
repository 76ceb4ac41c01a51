"""What threads of the host did in pieces of time: the innermost thing that was open on their lane, moment by moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.bisection import bisect
from cuptiprof.analysis.arrays.nesting import nest
from cuptiprof.analysis.dependencies.host_lanes import HOST_TABLES, HostLanes
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class HostPieces:
    """Columns of one length, by time.

    Attributes:
        start, end: ns.
        scope: number of the table in ``HOST_TABLES`` that has the innermost thing; -1: nothing was open.
        row: its row there.
        operator: row of the innermost operator; -1: none. region: of the innermost region.
    """

    start: Int64
    end: Int64
    scope: Int64
    row: Int64
    operator: Int64
    region: Int64


def host_pieces(result: Result, lanes: HostLanes, lane: Int64, start: Int64, end: Int64) -> HostPieces:
    """Of disjoint times, by start, each on a lane: cut where what is innermost changes. Looks only at what lies in them."""
    table, row, on, begins, ends = _scopes(result, lanes, lane, start, end)
    found = nest(on, begins, ends)
    table, row, on, begins, ends = (column[found.order] for column in (table, row, on, begins, ends))
    place = np.arange(len(row))
    # After a begin its own place is innermost, after an end its parent's.
    time, of_lane = np.r_[begins, ends], np.r_[on, on]
    label = np.r_[place, found.parent]
    opens = np.r_[place * 0 + 1, place * 0]
    deep = np.r_[found.depth, -found.depth]
    order = np.lexsort((deep, opens, time, of_lane))
    time, of_lane, label = time[order], of_lane[order], label[order]
    number = np.arange(int(max(lane.max(initial=-1), of_lane.max(initial=-1))) + 2)
    edges = np.searchsorted(of_lane, number)
    at = bisect(time, edges[lane], edges[lane + 1], start, "right") - 1
    first = np.where(at >= edges[lane], label[at], -1) if len(label) else at * 0 - 1
    within = np.searchsorted(start, time, side="right") - 1
    inside = np.flatnonzero(within >= 0)
    inside = inside[(time[inside] < end[within[inside]]) & (of_lane[inside] == lane[within[inside]])]
    cut = np.r_[start, time[inside]]
    last = np.r_[end, end[within[inside]]]
    what = np.r_[first, label[inside]]
    # Of changes at one time the last one counts, which comes after the piece's own begin.
    order = np.lexsort((np.r_[start * 0, 1 + np.arange(len(inside))], cut))
    cut, last, what = cut[order], last[order], what[order]
    until = np.minimum(np.r_[cut[1:], last[-1:]], last) if len(cut) else cut
    some = np.flatnonzero(until > cut)
    what = what[some]
    known = what >= 0

    def of(values: Int64) -> Int64:
        return np.where(known, values[np.maximum(what, 0)], -1) if len(values) else np.full(len(what), -1, np.int64)

    operator, region = (_nearest(found.parent, table == HOST_TABLES.index(name)) for name in ("operators", "regions"))
    return HostPieces(
        start=cut[some],
        end=until[some],
        scope=of(table),
        row=of(row),
        operator=of(np.where(operator >= 0, row[operator], -1)) if len(row) else what,
        region=of(np.where(region >= 0, row[region], -1)) if len(row) else what,
    )


def _scopes(result: Result, lanes: HostLanes, lane: Int64, start: Int64, end: Int64) -> tuple[Int64, ...]:
    """Table, row, lane, start and end of what was open during any of the times on its lane."""
    parts: list[tuple[Int64, ...]] = []
    order = np.argsort(lane, kind="stable")  # of one lane by start, as they come
    since, until = start[order], end[order]
    edges = np.searchsorted(lane[order], np.arange(len(lanes) + 1))
    covered = np.r_[0, np.cumsum(until - since)]

    def before(on: Int64, time: Int64) -> Int64:
        """Time of a lane's pieces before each moment."""
        place = bisect(since, edges[on], edges[on + 1], time, "right")
        last = np.maximum(place - 1, 0)
        inside = covered[last] + np.minimum(time, until[last]) - since[last] - covered[edges[on]]
        return np.where(place > edges[on], inside, 0)

    for i, name in enumerate(HOST_TABLES):
        source = result.tables[name]
        on = lanes.of(source["thread"].astype(np.int64))
        rows = np.flatnonzero((on >= 0) & (source["end"] > source["start"])) if len(lane) else on[:0]
        on, begins, ends = on[rows], source["start"][rows], source["end"][rows]
        shared = np.flatnonzero(before(on, ends) > before(on, begins)) if len(lane) else rows
        parts.append((np.full(len(shared), i), rows[shared], on[shared], begins[shared], ends[shared]))
    return tuple(np.concatenate([part[k] for part in parts]).astype(np.int64) for k in range(5))


def _nearest(parent: Int64, wanted: Array) -> Int64:
    """The innermost wanted place around each, or itself; -1: none. Steps double."""
    out = np.where(wanted, np.arange(len(parent)), -1)
    jump = parent.copy()
    while True:
        open_ = np.flatnonzero((out < 0) & (jump >= 0))
        if not len(open_):
            return out
        out[open_], jump[open_] = out[jump[open_]], jump[jump[open_]]
