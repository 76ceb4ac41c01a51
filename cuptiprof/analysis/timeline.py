"""What the GPUs did with the time of a run: busy with what, idle while the host did what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.aggregate import Intervals
from cuptiprof.analysis.communication import communicating
from cuptiprof.analysis.gpu_work import traced_graphs
from cuptiprof.analysis.intervals import length, time_within, union_of, union_of_all
from cuptiprof.data.codes import distinct, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table


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
    waits, calls = host_time(result)
    return [_one(device, work, waits, calls, span) for device, work in work_by_kind(result).items()]


def work_by_kind(result: Result) -> dict[int, dict[str, Intervals]]:
    """When each GPU that worked did what: device ordinal -> "compute", "copying" (sets as well), "communication"."""
    talk = communicating(result.kernels)
    graphs = result.graph_launches.where(traced_graphs(result)) if len(result.graph_launches) else result.graph_launches
    work = {
        "compute": [result.kernels.where(~talk) if talk.any() else result.kernels, graphs],
        "copying": [result.memcpys, result.memsets],
        "communication": [result.kernels.where(talk)] if talk.any() else [],
    }
    devices = sorted({int(d) for tables in work.values() for t in tables for d in distinct(t["device"])})
    return {device: {what: _of(device, tables) for what, tables in work.items()} for device in devices}


def _one(device: int, work: dict[str, Intervals], waits: Intervals, calls: Intervals, span: tuple[int, int]) -> GpuTime:
    busy = union_of_all(list(work.values()))
    gaps = busy.end[:-1], busy.start[1:]
    idle = int((gaps[1] - gaps[0]).sum())
    known = len(calls.start) > 0
    waited = int(time_within(waits, *gaps).sum())
    called = int(time_within(calls, *gaps).sum()) - waited
    return GpuTime(
        device=device,
        busy=length(busy),
        compute=length(work["compute"]),
        copying=length(work["copying"]),
        communication=length(work["communication"]),
        hidden=hidden(work),
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
        parts.append(union_of(*(table[c] if mine.all() else table[c][mine] for c in ("start", "end"))))
    return union_of_all(parts)


def hidden(work: dict[str, Intervals]) -> int:
    """Time of communication beside which something was computed, ns."""
    communication = work["communication"]
    return int(time_within(work["compute"], communication.start, communication.end).sum())


def host_time(result: Result) -> tuple[Intervals, Intervals]:
    """When any thread waited for the GPU, and when any was in a call of CUDA (waits among them)."""
    api = result.api_calls
    used, which = renumbered(api.codes("name"))
    waiting = np.array(["ynchronize" in api.strings[code] for code in used.tolist()], bool)
    mask = waiting[which] if len(used) else np.zeros(0, bool)
    syncs = result.synchronizations
    others = union_of(syncs["start"], syncs["end"])
    waits = union_of_all([union_of(api["start"][mask], api["end"][mask]), others])
    return waits, union_of_all([union_of(api["start"], api["end"]), others])
