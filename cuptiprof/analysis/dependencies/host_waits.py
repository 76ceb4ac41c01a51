"""Calls in which a thread of the host waited for the GPU, and the piece of work that each waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, latest_so_far
from cuptiprof.analysis.arrays.bisection import Sections, bisect
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.analysis.work.stream_work import StreamWork, work_tables
from cuptiprof.data.codes import renumbered
from cuptiprof.data.enums import MEMORY_KINDS, SYNC_KINDS, code_of
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

ANY = 0xFFFFFFFF
"""CUPTI's number of no stream, no event; here also of no GPU"""
_PAGEABLE = code_of(MEMORY_KINDS, "Pageable")
_EVENT, _STREAM, _STREAM_WAIT = (
    code_of(SYNC_KINDS, text) for text in ("Event Sync", "Stream Sync", "Stream Wait Event")
)
_FREES = ("cudaFree", "cuMemFree")  # wait for all of the device


@dataclass(frozen=True)
class Launched:
    """When each piece of ``StreamWork`` was launched.

    Attributes:
        call: row in ``api_calls``; -1: not recorded.
        time: start of that call, ns, not after the work began; the start of the work where none was recorded.
        in_order: the latest such time of the work so far on its stream: what was launched before a moment is a prefix of it.
        ended: the latest end so far on the stream, ns.
        edges: of each stream's part, shape (streams + 1,).
    """

    call: Int64
    time: Int64
    in_order: Int64
    ended: Int64
    edges: Int64

    def last_before(self, stream: Int64, launched: Int64, ended: Int64) -> Int64:
        """The last work of each stream (-1: none) that was launched before a moment and had ended by another; -1: none."""
        out = np.full(len(stream), -1, np.int64)
        some = np.flatnonzero(stream >= 0)
        first, after = self.edges[stream[some]], self.edges[stream[some] + 1]
        place = np.minimum(
            bisect(self.in_order, first, after, launched[some]),
            bisect(self.ended, first, after, ended[some], "right"),
        )
        out[some] = np.where(place > first, place - 1, -1)
        return out

    def first_after(self, stream: Int64, launched: Int64) -> Int64:
        """The first work of each stream (-1: none) that was launched at a moment or after; -1: none."""
        out = np.full(len(stream), -1, np.int64)
        some = np.flatnonzero(stream >= 0)
        first, after = self.edges[stream[some]], self.edges[stream[some] + 1]
        place = bisect(self.in_order, first, after, launched[some])
        out[some] = np.where(place < after, place, -1)
        return out


def launched(result: Result, work: StreamWork) -> Launched:
    """Of all work of a result."""
    api = result.api_calls
    call = calls_of(api, work.correlation)
    time = work.start.copy()
    known = call >= 0
    time[known] = np.minimum(api["start"][call[known]], time[known])
    some = len(time) > 0
    return Launched(
        call=call,
        time=time,
        in_order=latest_so_far(work.which, time) if some else time,
        ended=latest_so_far(work.which, work.end) if some else time,
        edges=np.searchsorted(work.which, np.arange(len(work.stream) + 1)),
    )


@dataclass(frozen=True)
class HostWaits:
    """Calls that returned because a piece of work had ended, by return; one entry a call.

    Attributes:
        call: row in ``api_calls``. thread, start, end: of it.
        work: index in ``StreamWork`` of what it waited for.
        release: when that had ended, ns; within the call.
    """

    call: Int64
    thread: Int64
    start: Int64
    end: Int64
    work: Int64
    release: Int64


def host_waits(result: Result, work: StreamWork, times: Launched) -> HostWaits:
    """All waits during which something that they waited for ended.

    * A synchronisation (``...Synchronize``) waits for the last work on its stream that was launched before it, or that before its event was
      recorded; without a stream, for that of all streams of its GPU (or of all, where the GPU is not known). So does ``cudaFree``.
    * A copy waits for itself, unless it is asynchronous and none of its sides is pageable memory.
    """
    api = result.api_calls
    used, which = renumbered(api.codes("name"))
    names = [str(api.strings[code]) for code in used.tolist()]

    def calls(wanted: list[bool]) -> Int64:
        return np.flatnonzero(np.array(wanted, bool)[which]) if names else np.zeros(0, np.int64)

    waiting = calls(
        ["ynchronize" in n or (n.startswith(_FREES) and "Async" not in n and "Array" not in n) for n in names]
    )
    found = _synchronisations(result, work, times, waiting)
    copies = _copies(result, work, times, which, np.array(["Memcpy" in n for n in names], bool),
                     np.array(["Async" in n for n in names], bool))  # fmt: skip
    call, of_work = (np.concatenate(both) for both in zip((waiting, found), copies, strict=True))
    start, end = api["start"][call], np.maximum(api["end"][call], api["start"][call])
    release = np.minimum(np.where(of_work >= 0, work.end[of_work], start), end) if len(work.end) else start
    order = np.flatnonzero(release > start)
    order = order[np.argsort(end[order], kind="stable")]
    thread = api["thread"][call].astype(np.int64)
    return HostWaits(call[order], thread[order], start[order], end[order], of_work[order], release[order])


def _synchronisations(result: Result, work: StreamWork, times: Launched, calls: Int64) -> Int64:
    """Work that each of the calls waited for; -1: none."""
    api, syncs = result.api_calls, result.synchronizations
    before, until = api["start"][calls], api["end"][calls]
    row = match(api["correlation_id"][calls], syncs["correlation_id"])
    row = np.where(api["correlation_id"][calls] != 0, row, -1)
    stream, device = (np.full(len(calls), ANY, np.int64) for _ in range(2))
    known = np.flatnonzero(row >= 0)
    kind = syncs["type"][row[known]]
    of_stream = known[kind == _STREAM]
    stream[of_stream] = syncs["stream"][row[of_stream]]
    device[known] = devices_of(result, syncs["context"][row[known]])
    of_event = known[kind == _EVENT]
    event, recorded = recorded_events(result, row[of_event], before[of_event])
    of_event, event, recorded = of_event[event >= 0], event[event >= 0], recorded[event >= 0]
    stream[of_event], device[of_event] = result.cuda_events["stream"][event], result.cuda_events["device"][event]
    before = before.copy()
    before[of_event] = np.minimum(recorded, before[of_event])
    return latest_before(work, times, stream, device, before, until)


def latest_before(
    work: StreamWork, times: Launched, stream: Int64, device: Int64, before: Int64, until: Int64
) -> Int64:
    """Of each wait the work that ended last of what was launched ``before`` it and had ended by ``until``, on its stream and GPU; -1: none.

    Without a stream it is that of all streams. Should work that was launched before have ended only later (the GPU is not known, or
    clocks are not exact), it is what had ended last.
    """
    out = times.last_before(streams_of(work, stream, device), before, until)
    every = np.flatnonzero(stream == ANY)
    if not len(every) or not len(work.start):
        return out
    _, number = renumbered(work.device)
    devices = int(number.max()) + 2  # the last one stands for all
    known = match(device[every], work.device)
    group = np.where((device[every] != ANY) & (known >= 0), number[np.maximum(known, 0)], devices - 1)
    out[every] = -1
    for wanted, of_work in (
        (group < devices - 1, number[work.which]),
        (group == devices - 1, np.full(len(work.start), devices - 1)),
    ):
        mine = every[wanted]
        if not len(mine):
            continue
        launched_by = Sections(of_work, times.time, devices)
        at = launched_by.order
        reach = latest_so_far(_rising(of_work[at]), work.end[at])
        leader = at[np.maximum.accumulate(np.where(work.end[at] == reach, np.arange(len(at)), 0))]
        of = np.empty(len(at), np.int64)
        of[at] = leader
        last = launched_by.last(group[wanted], before[mine], before=True)
        found = np.where(last >= 0, of[last], -1)
        late = (found >= 0) & (work.end[found] > until[mine])
        if late.any():
            found[late] = Sections(of_work, work.end, devices).last(group[wanted][late], until[mine[late]])
        out[mine] = found
    return out


def _rising(group: Array) -> Int64:
    """Numbers of groups that stand side by side: 0, 0, 1, ..."""
    return np.cumsum(np.r_[False, group[1:] != group[:-1]])


def streams_of(work: StreamWork, stream: Int64, device: Int64) -> Int64:
    """Number in ``StreamWork`` of each stream; where the GPU is not known the first of that ID; -1: it did no work, or is not known."""
    exact = (work.device << 32) + work.stream
    by_both = match((device.astype(np.int64) << 32) + stream, exact)
    by_number = match(stream, work.stream)
    return np.where(stream == ANY, -1, np.where(device == ANY, by_number, by_both))


def recorded_events(result: Result, syncs: Int64, before: Int64) -> tuple[Int64, Int64]:
    """Row in ``cuda_events`` of the record of the event that each row of ``synchronizations`` waits for, and when it was called for, ns; -1: not known."""
    events, waits = result.cuda_events, result.synchronizations
    out, time = (np.full(len(syncs), -1, np.int64) for _ in range(2))
    call = calls_of(result.api_calls, events["correlation_id"])
    usable = np.flatnonzero(call >= 0)
    if not len(usable) or not len(syncs):
        return out, time
    at = result.api_calls["start"][call[usable]]
    number, event = waits["event_sync_id"][syncs], waits["event"][syncs]
    pair = np.where(number != 0, match(number, events["event_sync_id"][usable]), -1)
    # Without that number: the last record of the event before the wait.
    used, which = renumbered(np.concatenate([events["event"][usable], event]))
    of_event = Sections(which[: len(usable)], at, len(used))
    place = of_event.last(which[len(usable) :].astype(np.int64), before)
    pair = np.where((pair < 0) & (event != ANY), place, pair)
    found = pair >= 0
    out[found], time[found] = usable[pair[found]], at[pair[found]]
    return out, time


def devices_of(result: Result, context: Array) -> Int64:
    """Ordinal of the GPU of each context, as far as work or the driver said; else of any."""
    out = np.full(len(context), ANY, np.int64)
    for table in (result.contexts, result.memsets, result.memcpys, result.kernels):
        at = match(context, table["context"])
        out[at >= 0] = table["device"][at[at >= 0]]
    return out


def _copies(
    result: Result, work: StreamWork, times: Launched, which: Array, is_copy: Array, is_async: Array
) -> tuple[Int64, Int64]:
    """Calls that copied and returned no sooner than the copy had ended: row in ``api_calls`` and the work."""
    kernels, memcpys = work_tables(result)[:2]
    of_copy = np.flatnonzero((work.row >= len(kernels)) & (work.row < len(kernels) + len(memcpys)) & (times.call >= 0))
    call, row = times.call[of_copy], work.row[of_copy] - len(kernels)
    pageable = (memcpys["src_kind"][row] == _PAGEABLE) | (memcpys["dst_kind"][row] == _PAGEABLE)
    if len(call):
        name = which[call]
        waited = is_copy[name] & (~is_async[name] | pageable) & (work.end[of_copy] <= result.api_calls["end"][call])
        call, of_copy = call[waited], of_copy[waited]
    return call, of_copy


def stream_waits(result: Result) -> tuple[Table, Int64]:
    """``synchronizations``, and the rows of it that made a stream wait for an event."""
    syncs = result.synchronizations
    return syncs, np.flatnonzero(syncs["type"] == _STREAM_WAIT)
