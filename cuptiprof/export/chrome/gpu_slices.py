"""GPU rows: kernels, copies, sets, whole graphs, synchronisations, overhead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.work.gpu_work import NameIds, bandwidths, named_work, traced_graphs
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.enums import NO_ID, OVERHEAD_KINDS, SYNC_KINDS
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.call_stack import stack_members
from cuptiprof.export.chrome.counter_tracks import add_kernel_metrics
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.chrome.json_text import Events, quoted
from cuptiprof.export.chrome.launch_args import launch_members

OVERHEAD_PID = -1  # where Kineto puts it
_CHANNEL_TYPES = {1: "COMPUTE", 2: "ASYNC_MEMCPY", 3: "DECOMP"}  # CUpti_ChannelType
_EVENT_SYNCHRONIZATION, _STREAM_WAIT_EVENT = 1, 2


def work_events(result: Result, who: Identity, tids: tuple[Int64, Int64, Int64]) -> Iterator[Events]:
    """Kernels, copies and sets, each on its row."""
    (kernels, _), (memcpys, copies), (memsets, sets) = named_work(result)
    yield _kernels(result, who, kernels, tids[0])
    copied = _copies(copies, who, "gpu_memcpy", memcpys, tids[1])
    yield copied.text("", *_peers(copies)).text("", *stack_members(result, copies)).same("}}")
    yield _copies(sets, who, "gpu_memset", memsets, tids[2]).text("", *stack_members(result, sets)).same("}}")


def _kernels(result: Result, who: Identity, names: NameIds, tid: Int64) -> Events:
    table = result.tables["kernels"]
    events = _slices("kernel", names, table, tid, who)
    queued = table["queued"]
    events.number(',"args":{"queued":', np.where(queued > 0, queued + who.clock.unix_offset, 0))
    _add_place(events, table, who)
    events.text("", *launch_members(result, table))
    graph, node = table["graph_id"], table["graph_node_id"]
    of_graph = (graph != 0) | (node != 0)
    events.number(',"graph id":', graph, of_graph).number(',"graph node id":', node, of_graph)
    kinds, kind = renumbered(table["channel_type"])
    known = table["channel_type"] != 0
    events.number(',"channel":', table["channel_id"], known)
    channels = [f'"{_CHANNEL_TYPES.get(number, number)}"' for number in kinds.tolist()]
    events.text(',"channel_type":', kind, channels, known)
    add_kernel_metrics(events, result)
    _add_capture(events, table)
    return events.text("", *stack_members(result, table)).same("}}")


def _copies(table: Table, who: Identity, category: str, names: NameIds, tid: Int64) -> Events:
    events = _slices(category, names, table, tid, who).number(',"args":{"bytes":', table["bytes"])
    _add_place(events, table, who)
    events.number(',"memory bandwidth (GB/s)":', np.nan_to_num(bandwidths(table, slice(None))))
    _add_capture(events, table)
    return events


def _slices(category: str, names: NameIds, table: Table, tid: Int64, who: Identity) -> Events:
    """From the beginning to ``dur``."""
    events = Events(len(table)).text(f',\n{{"ph":"X","cat":"{category}","name":', names.ids, quoted(names.names))
    events.number(',"pid":', who.gpu_pids(table["device"])).number(',"tid":', tid).time(
        ',"ts":', who.clock.since(table["start"])
    )
    return events.time(',"dur":', table["end"] - table["start"])


def _add_place(events: Events, table: Table, who: Identity) -> None:
    external = who.external_ids(table)
    events.number(',"External id":', external, external != 0)
    for column in ("device", "context", "stream"):
        events.number(f',"{column}":', table[column])
    events.number(',"correlation":', table["correlation_id"])


def _add_capture(events: Events, table: Table) -> None:
    """Where the work of graph nodes was captured."""
    known = table["capture_known"] != 0
    if known.any():
        events.name(',"capture region":', table.codes("capture_region"), table.strings, known)


def _peers(table: Table) -> tuple[Array, list[str]]:
    """Between which GPUs, of copies between two."""
    found, which = distinct_rows(table["is_peer"], table["src_device"], table["device"], table["dst_device"])
    return which, [
        f',"fromDevice":{source},"inDevice":{device},"toDevice":{target}' if is_peer else ""
        for is_peer, source, device, target in found.tolist()
    ]


def graph_events(result: Result, who: Identity, tid: Int64) -> Iterator[Events]:
    """Graph launches whose nodes were not recorded: one slice for the whole graph."""
    table = result.tables["graph_launches"].where(traced_graphs(result))
    graphs, which = renumbered(table["graph_id"])
    names = NameIds(which, [f"CUDA graph {graph}" for graph in graphs.tolist()])
    events = _slices("cuda_graph", names, table, tid, who).number(',"args":{"graph id":', table["graph_id"])
    _add_place(events, table, who)
    yield events.same("}}")


def sync_events(result: Result, who: Identity, tid: Int64) -> Iterator[Events]:
    """Waits of the host and of streams, and for which event of which stream."""
    table, recorded = result.tables["synchronizations"], result.tables["cuda_events"]
    kinds, which = renumbered(table["type"])
    names = [f'"{SYNC_KINDS.get(kind, "Unknown")}"' for kind in kinds.tolist()]
    device = who.device_of_context(table["context"])
    events = Events(len(table)).text(',\n{"ph":"X","cat":"cuda_sync","name":', which, names)
    events.number(',"pid":', who.gpu_pids(device)).number(',"tid":', tid).time(
        ',"ts":', who.clock.since(table["start"])
    )
    events.time(',"dur":', table["end"] - table["start"]).text(',"args":{"cuda_sync_kind":', which, names)
    events.number(',"stream":', _or_minus_one(table["stream"])).number(',"correlation":', table["correlation_id"])
    events.number(',"device":', device).number(',"context":', table["context"])
    # The last record of the event: match finds the first of several.
    key = recorded["event_sync_id"][::-1]
    record = match(table["event_sync_id"], key)
    known = (record >= 0) & (table["event_sync_id"] != 0)
    waited = np.isin(table["type"], (_EVENT_SYNCHRONIZATION, _STREAM_WAIT_EVENT))
    for name, column in (("wait_on_stream", "stream"), ("wait_on_cuda_event_record_corr_id", "correlation_id")):
        of_record = recorded[column][::-1].astype(np.int64)
        value = np.full(len(table), -1, np.int64)
        value[known] = of_record[record[known]]
        events.number(f',"{name}":', value, waited)
    yield events.number(',"wait_on_cuda_event_id":', _or_minus_one(table["event"]), waited).same("}}")


def overhead_events(result: Result, who: Identity, row: Int64) -> Iterator[Events]:
    """What CUPTI itself took."""
    table = result.tables["overhead"]
    kinds, which = renumbered(table["kind"])
    events = Events(len(table)).text(
        ',\n{"ph":"X","cat":"overhead","name":"',
        which,
        [OVERHEAD_KINDS.get(kind, "Unknown") for kind in kinds.tolist()],
    )
    events.number(f'","pid":{OVERHEAD_PID},"tid":', row).time(',"ts":', who.clock.since(table["start"]))
    yield events.time(',"dur":', table["end"] - table["start"]).same(',"args":{}}')


def _or_minus_one(values: Array) -> Int64:
    return np.where(values == NO_ID, -1, values.astype(np.int64))
