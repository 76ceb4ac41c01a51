"""GPU rows: kernels, copies, sets, whole graphs, regions projected to their streams, synchronisations, overhead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.analysis.gpu_work import bandwidths, kernel_names, traced_graphs
from cuptiprof.data.enums import MEMCPY_KINDS, MEMORY_KINDS, OVERHEAD_KINDS, SYNC_KINDS
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table
from cuptiprof.io.chrome.call_stack import CallStacks
from cuptiprof.io.chrome.capture_members import capture_members
from cuptiprof.io.chrome.counter_tracks import kernel_args
from cuptiprof.io.chrome.identity import Identity
from cuptiprof.io.chrome.json_text import microseconds, quoted
from cuptiprof.io.chrome.launch_args import LaunchArgs

CHUNK = 1 << 15
OVERHEAD_PID = -1  # where Kineto puts it
NO_ID = 0xFFFFFFFF  # a stream or event that is none
_CHANNEL_TYPES = {1: "COMPUTE", 2: "ASYNC_MEMCPY", 3: "DECOMP"}  # CUpti_ChannelType


def chunks(n: int) -> Iterator[slice]:
    return (slice(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK))


def kernel_events(result: Result, who: Identity, tid: Int64, demangle: bool = True) -> Iterator[list[str]]:
    table = result.tables["kernels"]
    launches = LaunchArgs(result)
    ids = kernel_names(table, demangle)
    names = quoted(ids.names)
    external = who.external_ids(table)
    counters = kernel_args(result)
    stacks = CallStacks(result)
    for rows in chunks(len(table)):
        get = _getter(table, rows)
        start = table["start"][rows]
        texts = []
        for (
            name,
            ts,
            dur,
            device,
            row,
            ext,
            queued,
            context,
            stream,
            correlation,
            config,
            graph,
            node,
            channel,
            kind,
            counted,
            stack,
        ) in zip(
            ids.ids[rows].tolist(),
            who.clock.ts(start),
            microseconds(table["end"][rows] - start),
            get("device"),
            tid[rows].tolist(),
            external[rows].tolist(),
            np.where(table["queued"][rows] > 0, table["queued"][rows] + who.clock.unix_offset, 0).tolist(),
            get("context"),
            get("stream"),
            get("correlation_id"),
            get("config"),
            get("graph_id"),
            get("graph_node_id"),
            get("channel_id"),
            get("channel_type"),
            counters(rows),
            _origins(stacks, table, rows),
            strict=True,
        ):
            extra = f',"graph id":{graph},"graph node id":{node}' if graph or node else ""
            if kind:
                extra += f',"channel":{channel},"channel_type":"{_CHANNEL_TYPES.get(kind, kind)}"'
            texts.append(
                f'{{"ph":"X","cat":"kernel","name":{names[name]},"pid":{device},"tid":{row},"ts":{ts},"dur":{dur},'
                f'"args":{{{_external(ext)}"queued":{queued},"device":{device},"context":{context},"stream":{stream},'
                f'"correlation":{correlation},{launches.text(device, config)}{extra}{counted}{stack}}}}}'
            )
        yield texts


def memcpy_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    table = result.tables["memcpys"]
    external = who.external_ids(table)
    stacks = CallStacks(result)
    for rows in chunks(len(table)):
        get = _getter(table, rows)
        peers = zip(get("is_peer"), get("src_device"), get("dst_device"), strict=True)
        names = [
            f'"Memcpy {_word(MEMCPY_KINDS, kind)} ({_word(MEMORY_KINDS, src)} -> {_word(MEMORY_KINDS, dst)})"'
            for kind, src, dst in zip(get("copy_kind"), get("src_kind"), get("dst_kind"), strict=True)
        ]
        extras = [
            (f',"fromDevice":{src},"inDevice":{device},"toDevice":{dst}' if is_peer else "") + stack
            for (is_peer, src, dst), device, stack in zip(
                peers, get("device"), _origins(stacks, table, rows), strict=True
            )
        ]
        yield _copies(table, rows, "gpu_memcpy", names, extras, external, tid, who)


def memset_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    table = result.tables["memsets"]
    external = who.external_ids(table)
    stacks = CallStacks(result)
    for rows in chunks(len(table)):
        names = [f'"Memset ({_word(MEMORY_KINDS, kind)})"' for kind in table["memory_kind"][rows].tolist()]
        yield _copies(table, rows, "gpu_memset", names, _origins(stacks, table, rows), external, tid, who)


def _copies(
    table: Table,
    rows: slice,
    category: str,
    names: list[str],
    extras: list[str],
    external: Int64,
    tid: Int64,
    who: Identity,
) -> list[str]:
    get = _getter(table, rows)
    start = table["start"][rows]
    duration = table["end"][rows] - start
    return [
        f'{{"ph":"X","cat":"{category}","name":{name},"pid":{device},"tid":{row},"ts":{ts},"dur":{dur},'
        f'"args":{{{_external(ext)}"device":{device},"context":{context},"stream":{stream},'
        f'"correlation":{correlation},"bytes":{size},"memory bandwidth (GB/s)":{rate!r}{extra}}}}}'
        for name, ts, dur, rate, device, row, ext, context, stream, correlation, size, extra in zip(
            names,
            who.clock.ts(start),
            microseconds(duration),
            np.nan_to_num(bandwidths(table, rows)).tolist(),
            get("device"),
            tid[rows].tolist(),
            external[rows].tolist(),
            get("context"),
            get("stream"),
            get("correlation_id"),
            get("bytes"),
            extras,
            strict=True,
        )
    ]


def graph_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    """Graph launches whose nodes were not recorded: one slice for the whole graph."""
    table = result.tables["graph_launches"].where(traced_graphs(result))
    external = who.external_ids(table)
    for rows in chunks(len(table)):
        get = _getter(table, rows)
        start = table["start"][rows]
        yield [
            f'{{"ph":"X","cat":"cuda_graph","name":"CUDA graph {graph}","pid":{device},"tid":{row},"ts":{ts},'
            f'"dur":{dur},"args":{{{_external(ext)}"device":{device},"context":{context},"stream":{stream},'
            f'"correlation":{correlation},"graph id":{graph}}}}}'
            for ts, dur, device, row, ext, context, stream, correlation, graph in zip(
                who.clock.ts(start),
                microseconds(table["end"][rows] - start),
                get("device"),
                tid[rows].tolist(),
                external[rows].tolist(),
                get("context"),
                get("stream"),
                get("correlation_id"),
                get("graph_id"),
                strict=True,
            )
        ]


def sync_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    table = result.tables["synchronizations"]
    device = who.device_of_context(table["context"])
    recorded = result.tables["cuda_events"]
    by_id: dict[int, tuple[int, int]] = {
        key: (stream, correlation)
        for key, stream, correlation in zip(
            recorded["event_sync_id"].tolist(),
            recorded["stream"].tolist(),
            recorded["correlation_id"].tolist(),
            strict=True,
        )
        if key
    }
    for rows in chunks(len(table)):
        get = _getter(table, rows)
        start = table["start"][rows]
        texts = []
        for ts, dur, kind, gpu, row, context, stream, correlation, event, key in zip(
            who.clock.ts(start),
            microseconds(table["end"][rows] - start),
            get("type"),
            device[rows].tolist(),
            tid[rows].tolist(),
            get("context"),
            get("stream"),
            get("correlation_id"),
            get("event"),
            get("event_sync_id"),
            strict=True,
        ):
            name = f'"{_word(SYNC_KINDS, kind)}"'
            waited = ""
            if kind in (1, 2):  # event synchronisation, stream wait event
                on_stream, on_correlation = by_id.get(key, (-1, -1))
                waited = (
                    f',"wait_on_stream":{on_stream},"wait_on_cuda_event_record_corr_id":{on_correlation},'
                    f'"wait_on_cuda_event_id":{_or_minus_one(event)}'
                )
            texts.append(
                f'{{"ph":"X","cat":"cuda_sync","name":{name},"pid":{gpu},"tid":{row},"ts":{ts},"dur":{dur},'
                f'"args":{{"cuda_sync_kind":{name},"stream":{_or_minus_one(stream)},"correlation":{correlation},'
                f'"device":{gpu},"context":{context}{waited}}}}}'
            )
        yield texts


def overhead_events(result: Result, who: Identity, row: Int64) -> Iterator[list[str]]:
    table = result.tables["overhead"]
    for rows in chunks(len(table)):
        start = table["start"][rows]
        yield [
            f'{{"ph":"X","cat":"overhead","name":"{_word(OVERHEAD_KINDS, kind)}","pid":{OVERHEAD_PID},'
            f'"tid":{tid},"ts":{ts},"dur":{dur},"args":{{}}}}'
            for ts, dur, kind, tid in zip(
                who.clock.ts(start),
                microseconds(table["end"][rows] - start),
                table["kind"][rows].tolist(),
                row[rows].tolist(),
                strict=True,
            )
        ]


def _getter(table: Table, rows: slice) -> Any:
    return lambda column: table[column][rows].tolist()


def _origins(stacks: CallStacks, table: Table, rows: slice) -> list[str]:
    """Where work comes from, beyond its launch's region, as JSON members."""
    pairs = zip(capture_members(table, rows), stacks.texts(table, rows), strict=True)
    return [captured + stack for captured, stack in pairs]


def _word(names: dict[int, str], value: int) -> str:
    return names.get(value, "Unknown")


def _external(value: int) -> str:
    return f'"External id":{value},' if value else ""


def _or_minus_one(value: int) -> int:
    return -1 if value == NO_ID else value
