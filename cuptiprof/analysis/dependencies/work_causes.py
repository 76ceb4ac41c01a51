"""Why each piece of GPU work began when it did: the work before it on its stream, an event of another stream, or its launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.bisection import Sections
from cuptiprof.analysis.dependencies.host_waits import (
    ANY,
    Launched,
    devices_of,
    latest_before,
    recorded_events,
    stream_waits,
    streams_of,
)
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.analysis.work.stream_work import StreamWork
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array

_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class WorkCauses:
    """Of each piece of ``StreamWork``.

    Attributes:
        work: index of the work whose end let it begin; -1: its launch did, or nobody knows.
        time: when that was, ns: the end of that work or the start of the launching call; its own start where nobody knows.
        by_launch: mask of those that their launch let begin.
        others: what else had to come first, on the GPU: works (-1: none), each with the time at which it had ended, ns. The cause is among
            them.
    """

    work: Int64
    time: Int64
    by_launch: Array
    others: list[tuple[Int64, Int64]]


def work_causes(result: Result, work: StreamWork, times: Launched) -> WorkCauses:
    """The latest of what had to come first.

    * On a stream one piece of work begins after the one before it.
    * What is launched after ``cudaStreamWaitEvent`` begins after the last work that was launched before the event was recorded on its stream.
      Where no record of that is there, it is taken to be what ended last on the other streams of the GPU.
    * Of the nodes of a graph that were launched together one begins after what of them ended last. (Which it waited for is not recorded.)
    * Nothing begins before its launch. Where no launch was recorded, it is what ended last on any stream.

    An end that lies after the start (clocks, rounding, programmatic launches) counts as if it lay at it.
    """
    count = len(work.start)
    place = np.arange(count)
    known = times.call >= 0
    cause = np.where(work.is_first, -1, place - 1)
    at = np.where(cause >= 0, np.minimum(work.end[cause], work.start), _NEVER) if count else place
    others = [(cause, at)]
    for other in (_events(result, work, times), _of_one_launch(work, times), _ended_last(work, ~known)):
        if not (other >= 0).any():
            continue
        ended = np.where(other >= 0, np.minimum(work.end[other], work.start), _NEVER)
        # Nothing waits for what began later: that would be a circle.
        sooner = (other >= 0) & (
            (work.start[other] < work.start) | ((work.start[other] == work.start) & (other < place))
        )
        others.append((np.where(sooner, other, -1), ended))
        later = sooner & (ended > at)
        cause, at = np.where(later, other, cause), np.where(later, ended, at)
    by_launch = known & (times.time > at)
    cause = np.where(by_launch, -1, cause)
    return WorkCauses(cause, np.where(by_launch, times.time, np.where(cause >= 0, at, work.start)), by_launch, others)


def _events(result: Result, work: StreamWork, times: Launched) -> Int64:
    """Of what was launched on a stream right after it was made to wait for an event, the work that it waited for; -1: all else."""
    out = np.full(len(work.start), -1, np.int64)
    syncs, rows = stream_waits(result)
    call = calls_of(result.api_calls, syncs["correlation_id"][rows])
    rows, call = rows[call >= 0], call[call >= 0]
    if not len(rows) or not len(work.start):
        return out
    called, waiting = result.api_calls["start"][call], syncs["stream"][rows]
    gpu = devices_of(result, syncs["context"][rows])
    event, recorded = recorded_events(result, rows, called)
    exact = event >= 0
    stream, device = (np.full(len(rows), ANY, np.int64) for _ in range(2))
    stream[exact], device[exact] = (result.cuda_events[column][event[exact]] for column in ("stream", "device"))
    forever = np.full(len(rows), np.iinfo(np.int64).max)
    source = latest_before(work, times, stream, device, np.where(exact, recorded, called), forever)
    following = times.first_after(streams_of(work, waiting.astype(np.int64), gpu), called)
    guessed = np.zeros(len(work.start), bool)
    guessed[following[(following >= 0) & ~exact]] = True
    out = np.where(guessed, _ended_last(work, guessed), out)
    known = np.flatnonzero((following >= 0) & exact & (source >= 0))
    known = known[
        np.argsort(work.end[source[known]], kind="stable")
    ]  # of several waits the last to end is written last
    out[following[known]] = source[known]
    return out


def _of_one_launch(work: StreamWork, times: Launched) -> Int64:
    """Of what was launched with others by one call, the one of them that ended last before each began; -1: none, and of all else."""
    out = np.full(len(work.start), -1, np.int64)
    known = np.flatnonzero(times.call >= 0)
    _, call = renumbered(times.call[known])
    shared = np.bincount(call)[call] > 1 if len(call) else call > 0
    mine = known[shared]
    if len(mine):
        used, group = renumbered(times.call[mine])
        place = Sections(group, work.end[mine], len(used)).last(group.astype(np.int64), work.start[mine])
        out[mine] = np.where(place >= 0, mine[np.maximum(place, 0)], -1)
    return out


def _ended_last(work: StreamWork, wanted: Array) -> Int64:
    """Of the wanted pieces the work of the same GPU that ended last before each began; -1: none, and of all else."""
    out = np.full(len(work.start), -1, np.int64)
    mine = np.flatnonzero(wanted)
    if len(mine):
        used, number = renumbered(work.device)
        gpu = number[work.which].astype(np.int64)
        out[mine] = Sections(gpu, work.end, len(used)).last(gpu[mine], work.start[mine])
    return out
