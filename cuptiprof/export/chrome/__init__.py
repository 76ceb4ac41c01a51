"""Chrome trace JSON with the fields of Kineto (torch.profiler), for Perfetto, chrome://tracing, HTA and TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.result import Progress, Result
from cuptiprof.export.chrome import (
    counter_tracks,
    gpu_slices,
    host_slices,
    memory_events,
    operator_slices,
    system_tracks,
)
from cuptiprof.export.chrome.header import members
from cuptiprof.export.chrome.json_text import Events
from cuptiprof.export.chrome.trace_layout import TraceLayout
from cuptiprof.export.output_stream import opened_output


def write(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Writes the trace (gzip if ``compress``); events are streamed, in memory there is one batch of them.

    Times are microseconds, exact to the ns; ``baseTimeNanoseconds`` makes Unix time of them. Slices that overlap without
    nesting are moved to a further row beside their own. Work without known times is left out.
    """
    layout = TraceLayout(result)
    done = 0
    with opened_output(path, compress) as out:
        for count, text in _pieces(members(layout.result, layout.who.clock.base_ns), [layout]):
            out.write(text)
            done += count
            if progress is not None:
                progress(min(done, layout.total), layout.total)
    if progress is not None:
        progress(layout.total, layout.total)


def write_ranks(head: Mapping[str, Any], layouts: Iterable[TraceLayout], path: Path, compress: bool) -> None:
    """Writes a trace of several ranks, one after the other.

    Args:
        head: members of the trace other than its events.
        layouts: all by one clock, each with its place.
    """
    with opened_output(path, compress) as out:
        for _, text in _pieces(head, layouts):
            out.write(text)


def _pieces(head: Mapping[str, Any], layouts: Iterable[TraceLayout]) -> Iterator[tuple[int, bytes]]:
    """The text, and how many events each piece of it has."""
    # The object is left open for the events. HTA finds the rank by `"rank": N`, blank included: indent writes it.
    yield 0, _encoded(json.dumps(head, indent=1).removesuffix("\n}") + ',\n "traceEvents": [')
    between, end = "\n", b""
    for layout in layouts:
        yield 0, _encoded(between + ",\n".join(layout.named_rows()))
        for events in _events(layout):
            yield from events.pieces()
        between, end = ",\n", _end_mark(layout)
    yield 0, end + b"\n]}\n"


def _encoded(text: str) -> bytes:
    # Names are escaped to ASCII; a lone surrogate in a host name or path is all that could not be encoded.
    return text.encode("utf-8", "backslashreplace")


def _events(layout: TraceLayout) -> Iterator[Events]:
    result, who = layout.result, layout.who
    yield from host_slices.region_events(result, who, layout.region_tid, layout.collectives)
    yield from operator_slices.operator_events(result, who, layout.operator_tid, layout.collectives)
    yield from layout.collectives.events(who, layout.collective_tid)
    yield from host_slices.marker_events(result, who, layout.marker_tid)
    yield from host_slices.call_events(result, who)
    if layout.samples is not None:
        yield from host_slices.sample_marks(layout.samples, who, layout.sample_tid)
    yield from host_slices.gpu_region_events(result, who, layout.spans, layout.span_tid)
    yield from gpu_slices.work_events(result, who, (layout.kernel_tid, layout.memcpy_tid, layout.memset_tid))
    yield from gpu_slices.graph_events(result, who, layout.graph_tid)
    yield from gpu_slices.sync_events(result, who, layout.sync_tid)
    yield from gpu_slices.overhead_events(result, who, layout.overhead_row)
    yield from counter_tracks.range_events(result, who.clock, layout.range_tid)
    yield from counter_tracks.sample_events(result, who.clock)
    yield from memory_events.memory_events(result, who)
    yield from system_tracks.system_counters(result, who.clock)
    yield from system_tracks.event_slices(layout.befell, who.clock)
    started = np.zeros(len(result.tables["api_calls"]), bool)
    for name, tid in (("kernels", layout.kernel_tid), ("memcpys", layout.memcpy_tid), ("memsets", layout.memset_tid)):
        yield from host_slices.flow_events(result, who, name, tid, started)
    yield from operator_slices.forward_events(result, who, layout.operator_tid)
    yield from host_slices.meeting_events(result, who, layout.kernel_tid)


def _end_mark(layout: TraceLayout) -> bytes:
    head = ',\n{"name":"Record Window End","ph":"i","s":"g","pid":"Traces","tid":"Trace cuptiprof"'
    return f'{head},"ts":{layout.who.clock.ts(layout.last)}}}'.encode()
