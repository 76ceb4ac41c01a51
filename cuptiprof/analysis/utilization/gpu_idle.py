"""Why each GPU, all of its streams together, had nothing to do between its first work and its last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, Parts, covered_before, union
from cuptiprof.analysis.thresholds import KERNEL_WAIT
from cuptiprof.analysis.work.gpu_work import traced_graphs
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.analysis.work.stream_work import work_tables
from cuptiprof.data.codes import distinct, renumbered
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

CAUSES = ("host", "synchronisation", "kernel wait", "other")
WORK_TABLES = ("kernels", "memcpys", "memsets", "graph_launches")


@dataclass(frozen=True)
class GpuIdle:
    """The gaps of one GPU, in order of time; arrays of one length, ns, int64.

    Attributes:
        device: ordinal.
        start, end: of each gap: end of all that ran before, start of the next work.
        late: mask: the host launched that work only after the GPU had run dry.
        synchronisation: of a late gap as much as the host had waited for the GPU.
        call: row in ``api_calls`` of what launched the work; -1: not recorded.
        wait: row in ``api_calls`` of the wait in which the GPU ran dry; -1: none.
        first, last: start of the first work, end of the last.
        unobserved: time between pieces of work, ns, that is in no gap: the session was paused in it, at least in part.
    """

    device: int
    start: Int64
    end: Int64
    late: npt.NDArray[np.bool_]
    synchronisation: Int64
    call: Int64
    wait: Int64
    first: int
    last: int
    unobserved: int
    _place: Int64  # of the work after it among the rows of all tables
    _rows: tuple[Int64 | None, ...]  # of each table those that are this GPU's; None: all
    _edges: Int64  # of each table the place of its first row

    @property
    def gap(self) -> Int64:
        """How long each is, ns: the four causes add up to it."""
        return self.end - self.start

    def totals(self) -> dict[str, int]:
        """Idle time by cause, ns: "host", "synchronisation"; of work that was launched in time (or nobody knows) "kernel wait", if it began
        within 30 us, else "other"."""
        parts = dict.fromkeys(CAUSES, 0)
        for at in range(0, len(self.start), _AT_ONCE):
            rows = slice(at, at + _AT_ONCE)
            gap, late, waited = (
                self.end[rows] - self.start[rows],
                self.late[rows],
                int(self.synchronisation[rows].sum()),
            )
            in_time = gap[~late]
            short = int(in_time[in_time < KERNEL_WAIT.value].sum())
            values = (int(gap[late].sum()) - waited, waited, short, int(in_time.sum()) - short)
            parts = {cause: parts[cause] + value for cause, value in zip(CAUSES, values, strict=True)}
        return parts

    def work_after(self, gaps: Int64) -> Iterator[tuple[str, Int64, Int64]]:
        """The work after these gaps (indices): name of its table, which of the gaps, row in the table of the result."""
        place = self._place[gaps]
        table = np.searchsorted(self._edges, place, side="right") - 1
        for i, name in enumerate(WORK_TABLES):
            which = np.flatnonzero(table == i)
            row, mine = place[which] - self._edges[i], self._rows[i]
            yield name, which, row if mine is None else mine[row]


def gpu_idle(result: Result) -> list[GpuIdle]:
    """Of each GPU that worked, by its number. The causes of a gap add up to it:

    * its work was launched (the call began) only after the GPU had run dry: the host was late. Of that, *synchronisation* is as much
      as the launching thread had spent waiting for the GPU, from the start of the wait in which the GPU ran dry to the launch: so much
      earlier could it have launched without. The rest is *host*;
    * it was launched in time (or its launch was not recorded): *kernel wait*, if the gap is shorter than ``KERNEL_WAIT``, else *other*, as in HTA's
      ``get_idle_time_breakdown`` (``idle_causes`` has that, stream by stream).

    Waits are calls with ``ynchronize`` in their names, and copies that are not ``Async``.
    """
    graphs = np.flatnonzero(traced_graphs(result))
    tables = work_tables(result)
    devices = sorted({int(d) for table in tables for d in distinct(table["device"])})
    waits = _Waits(result.api_calls)
    out = []
    for device in devices:
        rows = [None if len(devices) == 1 else np.flatnonzero(table["device"] == device) for table in tables]
        parts = [table if mine is None else table.where(mine) for table, mine in zip(tables, rows, strict=True)]
        rows[3] = graphs if rows[3] is None else graphs[rows[3]]
        out.append(_of(result, device, parts, rows, waits))
    return out


def _of(result: Result, device: int, tables: Sequence[Table], rows: Sequence[Int64 | None], waits: _Waits) -> GpuIdle:
    """`tables`: the work of this GPU; `rows`: where it is in the tables of the result (None: they are those)."""
    start, end = (np.concatenate([table[column] for table in tables]) for column in ("start", "end"))
    api = result.api_calls
    began, ended, place, first, last = _gaps(start, end)
    blind = time_unobserved(result.metadata, began, ended) > 0
    unobserved = int((ended - began)[blind].sum())
    if unobserved:
        began, ended, place = began[~blind], ended[~blind], place[~blind]
    correlation = np.concatenate([table.codes("correlation_id") for table in tables])[place]
    call = calls_of(api, correlation)
    late, launched = call >= 0, np.zeros(len(call), np.int64)
    if late.any():
        launched = api["start"][np.maximum(call, 0)]
        late &= launched > began
    synchronisation, wait = waits.before(call, began, launched, ended, late)
    return GpuIdle(
        device=device,
        start=began,
        end=ended,
        late=late,
        synchronisation=synchronisation,
        call=call,
        wait=wait,
        first=first,
        last=last,
        unobserved=unobserved,
        _place=place,
        _rows=tuple(rows),
        _edges=np.cumsum([0, *map(len, tables[:-1])]),
    )


def _gaps(start: Int64, end: Int64) -> tuple[Int64, Int64, Int64, int, int]:
    """(start, end, row of the work after it) of each gap; start of the first work, end of the last."""
    order = None if (start[1:] >= start[:-1]).all() else np.argsort(start, kind="stable")
    first = int(start[0] if order is None else start[order[0]])
    began, place, reach = [], [], first
    for at in range(0, len(start), _AT_ONCE):  # what is computed on the way stays in a core's cache
        rows = np.arange(at, min(at + _AT_ONCE, len(start))) if order is None else order[at : at + _AT_ONCE]
        begins = start[rows]
        so_far = np.maximum(end[rows], begins)
        so_far[0] = max(int(so_far[0]), reach)
        np.maximum.accumulate(so_far, out=so_far)
        before = np.r_[reach, so_far[:-1]]
        after = np.flatnonzero(begins > before)
        began.append(before[after])
        place.append(rows[after])
        reach = int(so_far[-1])
    places = np.concatenate(place)
    return np.concatenate(began), start[places], places, first, reach


_AT_ONCE = 1 << 17


class _Waits:
    """Calls in which a thread waits for the GPU, thread by thread."""

    def __init__(self, api: Table) -> None:
        self._api = api
        used, which = renumbered(api.codes("name"))
        waiting = np.array([is_wait(api.strings[code]) for code in used.tolist()], bool)
        self._rows = np.flatnonzero(waiting[which]) if waiting.any() else np.zeros(0, np.int64)

    def before(self, call: Int64, began: Int64, launched: Int64, ended: Int64, late: Array) -> tuple[Int64, Int64]:
        """Of each gap that is `late`: how long the thread of `call` waited from the start of the wait that was open at `began` (else
        from `began`) until it launched, at most the gap, and which wait that was (row; -1: none)."""
        waited, wait = np.zeros(len(call), np.int64), np.full(len(call), -1, np.int64)
        some = np.flatnonzero(late)
        if not len(some) or not len(self._rows):
            return waited, wait
        threads, thread = renumbered(self._api["thread"][self._rows])
        spans = union(thread, self._api["start"][self._rows], self._api["end"][self._rows])
        of_call = self._api["thread"][call[some]].astype(np.int64)
        at = np.minimum(np.searchsorted(threads, of_call), len(threads) - 1)
        has = threads[at] == of_call
        some, at = some[has], at[has]
        of_span, of_gap = Parts(spans.group, len(threads)), Parts(at, len(threads))
        of_row = Parts(thread, len(threads))
        for i in np.unique(at).tolist():
            gaps, mine = some[of_gap[i]], of_span[i]
            start, end = spans.start[mine], spans.end[mine]
            last = np.searchsorted(start, began[gaps], side="right") - 1
            is_open = (last >= 0) & (end[np.maximum(last, 0)] >= began[gaps])
            since = np.where(is_open, start[np.maximum(last, 0)], began[gaps])
            until = np.minimum(launched[gaps], ended[gaps])
            covered = covered_before(start, end, until) - covered_before(start, end, since)
            waited[gaps] = np.clip(covered, 0, ended[gaps] - began[gaps])
            rows = self._rows[of_row[i]]
            begins = self._api["start"][rows]
            order = np.argsort(begins, kind="stable")
            innermost = order[np.maximum(np.searchsorted(begins[order], began[gaps], side="right") - 1, 0)]
            wait[gaps] = np.where(is_open, rows[innermost], -1)
        return waited, wait


def is_wait(call: str) -> bool:
    """Whether a call of CUDA, by its name, returns only when the GPU has done what it was to do."""
    return "ynchronize" in call or ("Memcpy" in call and "Async" not in call)
