"""What a run has, as slices of a Perfetto trace: the same slices on the same rows as in the Chrome trace."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.trees.host_tree import BACKWARD_SCOPE, USER_SCOPE
from cuptiprof.analysis.utilization.system_events import KINDS
from cuptiprof.analysis.work.gpu_work import NameIds, bandwidths, named_work, traced_graphs
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.enums import OVERHEAD_KINDS, SYNC_KINDS
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.gpu_slices import OVERHEAD_PID
from cuptiprof.export.chrome.json_text import Events, Mask
from cuptiprof.export.chrome.trace_layout import TraceLayout
from cuptiprof.export.chrome.trace_place import Meetings
from cuptiprof.export.perfetto.named_slices import Extra, NamedSlices
from cuptiprof.export.perfetto.track_tree import befell_tid

_WORK = ("kernels", "memcpys", "memsets")
_FORWARD = 1 << 40
"""numbers of arrows to backward begin here; below are those of launches: the row of the call"""


def add_run(slices: NamedSlices, layout: TraceLayout) -> None:
    """Every slice of the run."""
    _add_host(slices, layout)
    _add_operators(slices, layout)
    _add_calls_and_work(slices, layout)
    _add_rest_of_gpu(slices, layout)
    _add_what_befell(slices, layout)
    _add_samples(slices, layout)


def _add_host(slices: NamedSlices, layout: TraceLayout) -> None:
    tables = layout.result.tables
    regions, markers = tables["regions"], tables["markers"]
    extras = [slices.text("path", regions.codes("path"), regions.strings)]
    extras.append(slices.text("metadata", regions.codes("metadata"), regions.strings))
    extras += [slices.argument(name, regions[name], np.isfinite(regions[name])) for name in ("flops", "bytes")]
    _add_on_host(slices, layout, "user_annotation", regions, layout.region_tid, extras)
    shown = markers["category"] != "gpu_user_annotation"
    kept = markers.where(shown)
    domain = [slices.text("domain", kept.codes("domain"), kept.strings)]
    _add_on_host(slices, layout, "user_annotation", kept, layout.marker_tid[shown], domain)
    collectives = tables["collectives"].where(layout.collectives.alone)
    sizes = [slices.argument(name, collectives[name]) for name in ("in_bytes", "out_bytes", "group_size")]
    _add_on_host(slices, layout, "collective", collectives, layout.collective_tid, sizes)


def _add_on_host(
    slices: NamedSlices, layout: TraceLayout, category: str, table: Table, tid: Array, extras: list[Extra]
) -> None:
    pid = np.full(len(table), layout.who.pid)
    names = slices.names(table.codes("name"), table.strings)
    slices.add(category, (pid, tid), (table["start"], table["end"]), names, extras)


def _add_operators(slices: NamedSlices, layout: TraceLayout) -> None:
    table = layout.result.tables["operators"]
    sequence = table["sequence"].astype(np.int64)
    made = match(table["forward"], table["instance"])
    is_node = (table["scope"] == BACKWARD_SCOPE) & (table["forward"] > 0) & (made >= 0)
    makes = np.zeros(len(table), bool)
    makes[made[is_node]] = True
    is_last = np.zeros(len(table), bool)
    is_last[_last_of_each(made, table["start"], is_node)] = True
    for scope, category in ((False, "cpu_op"), (True, "user_annotation")):
        rows = np.flatnonzero((table["scope"] == USER_SCOPE) == scope)
        part = table.where(rows)
        extras = [
            slices.argument("External id", part["instance"]),
            slices.argument("Sequence number", sequence[rows] - 1, sequence[rows] != 0),
            slices.text("Input Dims", part.codes("shapes"), part.strings),
            slices.text("Input type", part.codes("dtypes"), part.strings),
            slices.text("Module", part.codes("module"), part.strings),
            slices.arrow(_FORWARD + rows, makes[rows]),
            slices.arrow(_FORWARD + made[rows], (is_node & ~is_last)[rows]),
            slices.arrow(_FORWARD + made[rows], (is_node & is_last)[rows], is_last=True),
        ]
        _add_on_host(slices, layout, category, part, layout.operator_tid[rows], extras)


def _add_calls_and_work(slices: NamedSlices, layout: TraceLayout) -> None:
    result, who = layout.result, layout.who
    api = result.tables["api_calls"]
    calls = [who.calls(result.tables[name]["correlation_id"]) for name in _WORK]
    call = np.concatenate(calls)
    starts = np.concatenate([result.tables[name]["start"] for name in _WORK])
    is_last = np.zeros(len(call), bool)
    is_last[_last_of_each(call, starts, call >= 0)] = True
    launches = np.zeros(len(api), bool)
    launches[call[call >= 0]] = True
    _add_api(slices, layout, api, launches)
    lasts = np.split(is_last, np.cumsum([len(one) for one in calls])[:-1])
    tids = (layout.kernel_tid, layout.memcpy_tid, layout.memset_tid)
    for (names, table), category, tid, of_call, last in zip(
        named_work(result), ("kernel", "gpu_memcpy", "gpu_memset"), tids, calls, lasts, strict=True
    ):
        extras = [slices.arrow(of_call, (of_call >= 0) & ~last), slices.arrow(of_call, last, is_last=True)]
        extras += [slices.argument(name, table[name]) for name in ("context", "stream")]
        extras.append(slices.argument("correlation", table["correlation_id"]))
        extras.append(slices.text("region", table.codes("region"), table.strings))
        extras += _of_kernels(slices, result, table) if category == "kernel" else _of_copies(slices, table)
        if category == "kernel" and who.place is not None:
            extras.append(_of_meetings(slices, table, who.place.meetings))
        _add_on_gpu(slices, category, table, who.gpu_pids(table["device"]), tid, names, extras)


def _add_api(slices: NamedSlices, layout: TraceLayout, api: Table, launches: Mask) -> None:
    is_driver, pid = api["domain"] != 0, layout.who.pids(api["process"])
    for domain, category in ((False, "cuda_runtime"), (True, "cuda_driver")):
        rows = np.flatnonzero(is_driver == domain)
        code = api["return_value"][rows]
        extras = [
            slices.argument("correlation", api["correlation_id"][rows]),
            slices.argument("return value", code, code != 0),
            slices.arrow(rows, launches[rows]),
        ]
        names = slices.names(api.codes("name")[rows], api.strings)
        place = (pid[rows], api["thread"][rows])
        slices.add(category, place, (api["start"][rows], api["end"][rows]), names, extras)


def _of_kernels(slices: NamedSlices, result: Result, table: Table) -> list[Extra]:
    configs = result.tables["launch_configs"]
    used, which = renumbered(table["config"])
    shared = configs["static_shared_memory"].astype(np.int64) + configs["dynamic_shared_memory"]
    extras = [
        slices.argument("registers per thread", configs["registers_per_thread"][used][which]),
        slices.argument("shared memory", shared[used][which]),
    ]
    for what in ("grid", "block"):
        texts = Events(len(used))
        for before, axis in (("\n", "x"), (",", "y"), (",", "z")):
            texts.number(before, configs[f"{what}_{axis}"][used])
        lines = b"".join(text for _, text in texts.pieces()).decode().split("\n")[1:]
        extras.append(slices.text(what, which, lines))
    if len(result.metric_ranges):
        for name in result.counters:
            values = result.counters.of_kernels(table, name)
            extras.append(slices.argument(name, values, ~np.isnan(values)))
    return extras


def _of_meetings(slices: NamedSlices, table: Table, meetings: Meetings) -> Extra:
    rows, calls, _ = meetings.of_kernels(table)
    key, shown = np.zeros(len(table), np.int64), np.zeros(len(table), bool)
    key[rows], shown[rows] = calls, True
    return slices.common_arrow(key, shown)


def _of_copies(slices: NamedSlices, table: Table) -> list[Extra]:
    rate = bandwidths(table, slice(None))
    return [
        slices.argument("bytes", table["bytes"]),
        slices.argument("memory bandwidth (GB/s)", rate, np.isfinite(rate)),
    ]


def _add_rest_of_gpu(slices: NamedSlices, layout: TraceLayout) -> None:
    result, spans = layout.result, layout.spans
    tables, regions = result.tables, result.tables["regions"]
    names = slices.names(regions.codes("name")[spans["region_row"]], regions.strings)
    place = (layout.who.gpu_pids(spans["device"]), layout.span_tid)
    slices.add("gpu_user_annotation", place, (spans["start"], spans["end"]), names, [])
    graphs = tables["graph_launches"].where(traced_graphs(result))
    numbers, which = renumbered(graphs["graph_id"])
    graph_names = NameIds(which, [f"CUDA graph {number}" for number in numbers.tolist()])
    _add_on_gpu(slices, "cuda_graph", graphs, layout.who.gpu_pids(graphs["device"]), layout.graph_tid, graph_names, [])
    waits = tables["synchronizations"]
    device = layout.who.device_of_context(waits["context"])
    _add_of_kind(slices, "cuda_sync", waits, "type", SYNC_KINDS, (layout.who.gpu_pids(device), layout.sync_tid))
    overhead = tables["overhead"]
    where = (np.full(len(overhead), OVERHEAD_PID), layout.overhead_row)
    _add_of_kind(slices, "overhead", overhead, "kind", OVERHEAD_KINDS, where)


def _add_what_befell(slices: NamedSlices, layout: TraceLayout) -> None:
    found = layout.befell
    rows = np.array([(e.device, befell_tid(e), e.start, e.end) for e in found], np.int64).reshape(-1, 4).T
    kinds = slices.names(np.array([KINDS.index(event.kind) for event in found], np.int64), KINDS)
    detail = slices.text("detail", np.arange(len(found)), [event.text() for event in found])
    slices.add("system_event", (rows[0], rows[1]), (rows[2], rows[3]), kinds, [detail])


def _add_samples(slices: NamedSlices, layout: TraceLayout) -> None:
    found = layout.samples
    if found is not None:
        stacks = slices.text("stack", found.stack, found.stacks)
        place = (np.full(len(found.time), layout.who.pid), layout.sample_tid)
        slices.add("cpu_sample", place, (found.time, found.time), slices.names(found.stack, found.functions), [stacks])


def _add_on_gpu(
    slices: NamedSlices, category: str, table: Table, pid: Array, tid: Array, names: NameIds, extras: list[Extra]
) -> None:
    times = table["start"], table["end"]
    slices.add(category, (pid, tid), times, slices.names(names.ids, names.names), extras)


def _add_of_kind(
    slices: NamedSlices, category: str, table: Table, column: str, kinds: dict[int, str], place: tuple[Array, Array]
) -> None:
    found, which = distinct_rows(table[column])
    names = slices.names(which, [kinds.get(kind, "Unknown") for (kind,) in found.tolist()])
    slices.add(category, place, (table["start"], table["end"]), names, [])


def _last_of_each(key: Array, start: Array, counted: Mask) -> Array:
    """Of the rows that count the one of each key that starts last."""
    rows = np.flatnonzero(counted)
    rows = rows[np.lexsort((start[rows], key[rows]))]
    ordered = key[rows]
    return rows[np.r_[ordered[1:] != ordered[:-1], np.ones(min(len(rows), 1), bool)]]
