"""The training steps of a run: when they were on the host, and when on the GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
_ENOUGH = 0.8  # of the work of the step before: the last step with less was cut off


@dataclass(frozen=True)
class StepSpans:
    """``name`` of each step (its number), ``start`` and ``end`` (ns, int64), by start."""

    name: list[str]
    start: Int64
    end: Int64

    def __len__(self) -> int:
        return len(self.name)


def host_steps(result: Result) -> StepSpans:
    """Those that ``step()`` marked, else the regions ``ProfilerStep#N`` of another profiler."""
    markers, regions = result.markers, result.regions
    marked = _rows(markers, "category", lambda text: text == "step")
    table, rows = (
        (markers, marked) if len(marked) else (regions, _rows(regions, "name", lambda t: bool(_STEP.fullmatch(t))))
    )
    rows = rows[np.argsort(table["start"][rows], kind="stable")]
    names = [table.strings[code] for code in table.codes("name")[rows].tolist()]
    start = table["start"][rows]
    found = [_STEP.fullmatch(name) for name in names]
    return StepSpans(
        [m[1] if m else n for m, n in zip(found, names, strict=True)], start, np.maximum(table["end"][rows], start)
    )


def gpu_steps(result: Result) -> StepSpans:
    """Steps with the GPU work that was launched in them, as TensorBoard's plugin for torch.profiler has them.

    A step goes from the later of the end of the step before and its start on the host, to the later of its end on the host and that of the last
    work that a call in it launched. What stands before the first is the last work that no step launched and that ended before the
    first step's began. Steps at the end that launched nothing are left out, and then the last, if it launched less than 80 %
    of what the one before did. Without steps, what the host did (operators, regions, else calls) is one; without GPU work they are those of
    the host.
    """
    steps = host_steps(result)
    if not len(steps):
        steps = _whole(result)
    if len(steps) == 1 and (single := _single(result, steps)) is not None:
        return single
    api = result.api_calls
    tables = [result.kernels, result.memcpys, result.memsets]
    begin, end, ids = (np.concatenate([t[c] for t in tables]) for c in ("start", "end", "correlation_id"))
    call = calls_of(api, ids)
    which = np.searchsorted(steps.start, api["start"], side="right") - 1
    inside = (which >= 0) & (api["end"] <= steps.end[np.maximum(which, 0)]) if len(steps) else np.zeros(len(api), bool)
    mine = call >= 0
    mine[mine] = inside[call[mine]]
    if not mine.any():
        return steps
    of = which[call[mine]]
    launched = np.bincount(of, minlength=len(steps))
    first, last = np.full(len(steps), np.iinfo(np.int64).max), np.full(len(steps), np.iinfo(np.int64).min)
    np.minimum.at(first, of, begin[mine])
    np.maximum.at(last, of, end[mine])
    before = int(steps.start[0])
    if launched[0]:
        earlier = end[~mine]
        before = max([before, *earlier[earlier < first[0]].max(initial=before, keepdims=True).tolist()])
    start, stop = steps.start.copy(), np.maximum(steps.end, last)
    for i in range(len(steps)):  # each begins where the one before ended
        start[i] = max(before, int(start[i]))
        stop[i] = before = max(int(stop[i]), int(start[i]))
    kept = int(np.flatnonzero(launched)[-1]) + 1
    if kept > 1 and launched[kept - 2] * _ENOUGH > launched[kept - 1]:
        kept -= 1
    return StepSpans(steps.name[:kept], start[:kept], stop[:kept])


_HEAD = 4096
"""Rows at the beginning of each table among which the first work of a step is looked for."""


def _single(result: Result, steps: StepSpans) -> StepSpans | None:
    """``gpu_steps`` of one step that has all calls, without looking for the call of all work: only of what was first, and of what ended
    after the step on the host. None: it must be looked for."""
    api, begin, end = result.api_calls, int(steps.start[0]), int(steps.end[0])
    tables = [table for table in (result.kernels, result.memcpys, result.memsets) if len(table)]
    if not len(api) or not tables or int(api["start"].min()) < begin or int(api["end"].max()) > end:
        return None
    if any((table["start"][1:] < table["start"][:-1]).any() for table in tables):
        return None
    heads = [table.head(_HEAD) for table in tables]
    starts, ends, ids = (np.concatenate([head[c] for head in heads]) for c in ("start", "end", "correlation_id"))
    mine = _has_call(ids, api)
    first = int(starts[mine].min()) if mine.any() else None
    if first is None or any(len(t) > _HEAD and int(h["start"][-1]) < first for t, h in zip(tables, heads, strict=True)):
        return None
    earlier = ends[~mine & (ends < first)]
    late = [table.where(table["end"] > end) for table in tables]
    after = np.concatenate([table["end"][_has_call(table["correlation_id"], api)] for table in late])
    start = max([begin, *earlier.tolist()])
    return StepSpans(steps.name, np.array([start]), np.array([max([end, start, *after.tolist()])]))


def _has_call(ids: Array, api: Table) -> Array:
    """Whether a call with each correlation ID was recorded."""
    mask: Array = np.isin(ids, api.codes("correlation_id")) & (ids != 0)
    return mask


def _whole(result: Result) -> StepSpans:
    tables = [t for t in (result.operators, result.regions) if len(t)] or [t for t in (result.api_calls,) if len(t)]
    if not tables:
        return StepSpans([], np.zeros(0, np.int64), np.zeros(0, np.int64))
    start, end = min(int(t["start"].min()) for t in tables), max(int(t["end"].max()) for t in tables)
    return StepSpans(["0"], np.array([start]), np.array([max(start, end)]))


def _rows(table: Table, column: str, wanted: Callable[[str], bool]) -> Array:
    used, which = renumbered(table.codes(column))
    mask = np.array([wanted(table.strings[code]) for code in used.tolist()], bool)
    return np.flatnonzero(mask[which]) if len(used) else np.zeros(0, np.intp)
