"""What the GPUs did with the time of a run: busy with what, idle while the host did what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.aggregate import Int64, Intervals, covered_before, union
from cuptiprof.analysis.communication import communicating
from cuptiprof.analysis.gpu_work import traced_graphs
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table


@dataclass(frozen=True)
class GpuTime:
    """Of one GPU, ns. ``compute``, ``copying`` and ``communication`` overlap where they ran at once; ``hidden`` is the part of
    communication beside which something was computed. ``before`` and ``after`` are idle time around the first and the last
    work; ``waited``, ``called`` and ``elsewhere`` what the host did during the rest of it (None: no calls were recorded)."""

    device: int
    busy: int
    compute: int
    copying: int
    communication: int
    hidden: int
    before: int
    after: int
    waited: int | None
    called: int | None
    elsewhere: int | None


def recorded_span(result: Result) -> tuple[int, int] | None:
    """From the first to the last thing recorded, ns; None where nothing was."""
    names = ("kernels", "memcpys", "memsets", "graph_launches", "api_calls", "regions", "operators", "markers")
    tables = [table for name in names if len(table := result.tables[name])]
    if not tables:
        return None
    return min(int(t["start"].min()) for t in tables), max(int(t["end"].max()) for t in tables)


def gpu_time(result: Result, span: tuple[int, int]) -> list[GpuTime]:
    """Of each GPU that worked, by its number. ``span``: the time that counts, which holds all of the work."""
    talk = communicating(result.kernels)
    graphs = result.graph_launches.where(traced_graphs(result)) if len(result.graph_launches) else result.graph_launches
    work = {
        "compute": [result.kernels.where(~talk) if talk.any() else result.kernels, graphs],
        "copying": [result.memcpys, result.memsets],
        "communication": [result.kernels.where(talk)] if talk.any() else [],
    }
    devices = sorted({int(d) for tables in work.values() for t in tables for d in np.unique(t["device"])})
    waits, calls = _host(result)
    return [
        _one(device, {what: _of(device, tables) for what, tables in work.items()}, waits, calls, span)
        for device in devices
    ]


def _one(device: int, work: dict[str, Intervals], waits: Intervals, calls: Intervals, span: tuple[int, int]) -> GpuTime:
    busy = _together(list(work.values()))
    gaps = busy.end[:-1], busy.start[1:]
    idle = int((gaps[1] - gaps[0]).sum())
    known = len(calls.start) > 0
    waited = _inside(waits, *gaps)
    called = _inside(calls, *gaps) - waited
    return GpuTime(
        device=device,
        busy=_length(busy),
        compute=_length(work["compute"]),
        copying=_length(work["copying"]),
        communication=_length(work["communication"]),
        hidden=_inside(work["compute"], work["communication"].start, work["communication"].end),
        before=int(busy.start[0]) - span[0],
        after=span[1] - int(busy.end[-1]),
        waited=waited if known else None,
        called=called if known else None,
        elsewhere=idle - waited - called if known else None,
    )


def _of(device: int, tables: list[Table]) -> Intervals:
    parts = []
    for table in tables:
        mine = table["device"] == device
        parts.append(_union(*(table[c] if mine.all() else table[c][mine] for c in ("start", "end"))))
    return _together(parts)


def _host(result: Result) -> tuple[Intervals, Intervals]:
    """When any thread waited for the GPU, and when any was in a call of CUDA (waits among them)."""
    api = result.api_calls
    used, which = renumbered(api.codes("name"))
    waiting = np.array(["ynchronize" in api.strings[code] for code in used.tolist()], bool)
    mask = waiting[which] if len(used) else np.zeros(0, bool)
    syncs = result.synchronizations
    others = _union(syncs["start"], syncs["end"])
    waits = _together([_union(api["start"][mask], api["end"][mask]), others])
    return waits, _together([_union(api["start"], api["end"]), others])


def _union(start: Array, end: Array) -> Intervals:
    if len(start) and not (start[1:] >= start[:-1]).all():
        order = np.argsort(start, kind="stable")  # of runs that are sorted already it makes one in linear time
        start, end = start[order], end[order]
    return union(np.zeros(len(start), np.int64), start, end)


def _together(parts: list[Intervals]) -> Intervals:
    there = [part for part in parts if len(part.start)]
    if len(there) <= 1:
        return there[0] if there else _union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return _union(np.concatenate([p.start for p in there]), np.concatenate([p.end for p in there]))


def _length(intervals: Intervals) -> int:
    return int((intervals.end - intervals.start).sum())


def _inside(intervals: Intervals, start: Int64, end: Int64) -> int:
    """Time that the intervals and [start, end) have in common."""
    if not len(start):
        return 0
    covered = covered_before(intervals.start, intervals.end, end) - covered_before(
        intervals.start, intervals.end, start
    )
    return int(covered.sum())
