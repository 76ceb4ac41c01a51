"""What the GPUs did with the time of a run: busy with what; when the host waited, or was in calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Intervals
from cuptiprof.analysis.arrays.intervals import length, time_within, union_of, union_of_all
from cuptiprof.analysis.utilization.gpu_idle import GpuIdle
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.analysis.work.gpu_work import traced_graphs
from cuptiprof.data.codes import distinct, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table


@dataclass(frozen=True)
class GpuTime:
    """Of one GPU, ns. ``compute``, ``copying`` and ``communication`` overlap where they ran at once; ``hidden`` is the part of
    communication, ``hidden_copying`` that of copies and sets, beside which something was computed. ``first`` and ``last``: start of the
    first work, end of the last."""

    device: int
    busy: int
    compute: int
    copying: int
    communication: int
    hidden: int
    hidden_copying: int
    first: int
    last: int


def recorded_span(result: Result) -> tuple[int, int] | None:
    """From the first to the last thing recorded, ns; None where nothing was."""
    names = ("kernels", "memcpys", "memsets", "graph_launches", "api_calls", "regions", "operators", "markers")
    tables = [table for name in names if len(table := result.tables[name])]
    if not tables:
        return None
    return min(int(t["start"].min()) for t in tables), max(int(t["end"].max()) for t in tables)


def gpu_time(work: dict[int, dict[str, Intervals]], idle: Sequence[GpuIdle]) -> list[GpuTime]:
    """Of each GPU that worked, by its number, from ``work_by_kind`` and ``gpu_idle``."""
    return [_one(gaps, work[gaps.device]) for gaps in idle]


def work_by_kind(result: Result, talk: Array | None = None) -> dict[int, dict[str, Intervals]]:
    """When each GPU that worked did what: device ordinal -> "compute", "copying" (sets as well), "communication".

    ``talk``: ``communicating(result.kernels)``, where it is known already."""
    talk = communicating(result.kernels) if talk is None else talk
    graphs = result.graph_launches.where(traced_graphs(result)) if len(result.graph_launches) else result.graph_launches
    work = {
        "compute": [result.kernels.where(~talk) if talk.any() else result.kernels, graphs],
        "copying": [result.memcpys, result.memsets],
        "communication": [result.kernels.where(talk)] if talk.any() else [],
    }
    devices = sorted({int(d) for tables in work.values() for t in tables for d in distinct(t["device"])})
    return {device: {what: _of(device, tables) for what, tables in work.items()} for device in devices}


def _one(idle: GpuIdle, work: dict[str, Intervals]) -> GpuTime:
    compute, copying = work["compute"], work["copying"]
    return GpuTime(
        device=idle.device,
        busy=idle.last - idle.first - idle.unobserved - int((idle.end - idle.start).sum()),
        compute=length(compute),
        copying=length(copying),
        communication=length(work["communication"]),
        hidden=hidden(work),
        hidden_copying=int(time_within(compute, copying.start, copying.end).sum()),
        first=idle.first,
        last=idle.last,
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
