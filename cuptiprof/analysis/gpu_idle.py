"""Why each GPU, all of its streams together, had nothing to do between its first work and its last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.aggregate import Int64, Parts, covered_before, union
from cuptiprof.analysis.gpu_work import traced_graphs
from cuptiprof.analysis.launch_calls import calls_of
from cuptiprof.analysis.thresholds import KERNEL_WAIT
from cuptiprof.data.codes import distinct, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

WORK_TABLES = ("kernels", "memcpys", "memsets", "graph_launches")


@dataclass(frozen=True)
class GpuIdle:
    """The gaps of one GPU, in order of time; arrays of one length, ns, int64.

    Attributes:
        device: ordinal.
        start, end: of each gap: end of all that ran before, start of the next work.
        host: the host was late, and had not waited.
        synchronisation: the host was late, and had waited for the GPU.
        kernel_wait: the work after it was launched in time and began within 30 us.
        other: it was launched in time and began later, or its launch was not recorded.
        table, row: the work after it: index into ``WORK_TABLES``, and its row there.
        call: row in ``api_calls`` of what launched that; -1: not recorded.
        wait: row in ``api_calls`` of the wait in which the GPU ran dry; -1: none.
        first, last: start of the first work, end of the last.
    """

    device: int
    start: Int64
    end: Int64
    host: Int64
    synchronisation: Int64
    kernel_wait: Int64
    other: Int64
    table: npt.NDArray[np.uint8]
    row: Int64
    call: Int64
    wait: Int64
    first: int
    last: int

    @property
    def late(self) -> npt.NDArray[np.bool_]:
        """Mask: the work after the gap was launched in it."""
        return (self.host + self.synchronisation) > 0


def gpu_idle(result: Result) -> list[GpuIdle]:
    """Of each GPU that worked, by its number. The causes of a gap add up to it:

    * its work was launched (the call began) only after the GPU had run dry: the host was late. Of that, *synchronisation* is as much
      as the launching thread had spent waiting for the GPU, from the start of the wait in which the GPU ran dry to the launch: so much
      earlier could it have launched without. The rest is *host*;
    * it was launched in time: *kernel wait*, if the gap is shorter than ``KERNEL_WAIT``, else *other*, as in HTA's
      ``get_idle_time_breakdown`` (``idle_causes`` has that, stream by stream).

    Waits are calls with ``ynchronize`` in their names, and copies that are not ``Async``.
    """
    graphs = np.flatnonzero(traced_graphs(result))
    tables = [*(result.tables[name] for name in WORK_TABLES[:3]), result.graph_launches.where(graphs)]
    devices = sorted({int(d) for table in tables for d in distinct(table["device"])})
    waits = _Waits(result.api_calls)
    out = []
    for device in devices:
        rows = [None if len(devices) == 1 else np.flatnonzero(table["device"] == device) for table in tables]
        parts = [table if mine is None else table.where(mine) for table, mine in zip(tables, rows, strict=True)]
        rows[3] = graphs if rows[3] is None else graphs[rows[3]]
        out.append(_of(result.api_calls, device, parts, rows, waits))
    return out


def _of(api: Table, device: int, tables: list[Table], rows: list[Int64 | None], waits: _Waits) -> GpuIdle:
    """`tables`: the work of this GPU; `rows`: where it is in the tables of the result (None: they are those)."""
    start, end = (np.concatenate([table[column] for table in tables]) for column in ("start", "end"))
    order = None if (start[1:] >= start[:-1]).all() else np.argsort(start, kind="stable")
    if order is not None:
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(np.maximum(end, start))
    after = np.flatnonzero(start[1:] > reach[:-1]) + 1
    began, ended = reach[after - 1], start[after]
    place = after if order is None else order[after]
    edges = np.cumsum([0, *map(len, tables)])
    table = (np.searchsorted(edges, place, side="right") - 1).astype(np.uint8)
    row, correlation = place - edges[table], np.zeros(len(place), np.int64)
    for i, (of, whole) in enumerate(zip(tables, rows, strict=True)):
        mine = np.flatnonzero(table == i)
        if len(mine):
            correlation[mine] = of.codes("correlation_id")[row[mine]]
            row[mine] = row[mine] if whole is None else whole[row[mine]]
    call = calls_of(api, correlation)
    known = call >= 0
    launched = np.where(known, api["start"][np.maximum(call, 0)], 0) if len(api) else np.zeros(len(call), np.int64)
    gap = ended - began
    late = known & (launched > began)
    synchronisation, wait = waits.before(call, began, np.minimum(launched, ended), late)
    synchronisation = np.minimum(synchronisation, gap)
    short = gap < KERNEL_WAIT.value
    return GpuIdle(
        device=device,
        start=began,
        end=ended,
        host=np.where(late, gap - synchronisation, 0),
        synchronisation=synchronisation,
        kernel_wait=np.where(~late & short, gap, 0),
        other=np.where(~late & ~short, gap, 0),
        table=table,
        row=row,
        call=call,
        wait=wait,
        first=int(start[0]),
        last=int(reach[-1]),
    )


class _Waits:
    """Calls in which a thread waits for the GPU, thread by thread."""

    def __init__(self, api: Table) -> None:
        self._api = api
        used, which = renumbered(api.codes("name"))
        waiting = np.array([is_wait(api.strings[code]) for code in used.tolist()], bool)
        self._rows = np.flatnonzero(waiting[which]) if waiting.any() else np.zeros(0, np.int64)

    def before(self, call: Int64, began: Int64, until: Int64, late: Array) -> tuple[Int64, Int64]:
        """Of each gap that is `late`: how long the thread of `call` waited from the start of the wait that was open at `began` (else
        from `began`) until `until`, and which wait that was (row; -1: none)."""
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
            waited[gaps] = np.maximum(covered_before(start, end, until[gaps]) - covered_before(start, end, since), 0)
            rows = self._rows[of_row[i]]
            begins = self._api["start"][rows]
            order = np.argsort(begins, kind="stable")
            innermost = order[np.maximum(np.searchsorted(begins[order], began[gaps], side="right") - 1, 0)]
            wait[gaps] = np.where(is_open, rows[innermost], -1)
        return waited, wait


def is_wait(call: str) -> bool:
    """Whether a call of CUDA, by its name, returns only when the GPU has done what it was to do."""
    return "ynchronize" in call or ("Memcpy" in call and "Async" not in call)
