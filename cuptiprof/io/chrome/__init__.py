"""Chrome trace JSON with the fields of Kineto (torch.profiler), for Perfetto, chrome://tracing, HTA and TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cuptiprof.data.result import Progress, Result
from cuptiprof.io.chrome import counter_tracks, gpu_slices, host_slices, memory_events, operator_slices
from cuptiprof.io.chrome.header import members
from cuptiprof.io.chrome.json_text import Events
from cuptiprof.io.chrome.trace_layout import TraceLayout
from cuptiprof.io.output_stream import opened_output


def write(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Writes the trace (gzip if ``compress``); events are streamed, in memory there is one batch of them.

    Times are microseconds, exact to the ns; ``baseTimeNanoseconds`` makes Unix time of them. Slices that overlap without
    nesting are moved to a further row beside their own. Work without known times is left out.
    """
    layout = TraceLayout(result)
    done = 0
    with opened_output(path, compress) as out:
        head = json.dumps(members(layout.result, layout.who.clock.base_ns), indent=1)
        # The object is left open for the events. HTA finds the rank by `"rank": N`, blank included: indent writes it.
        head = head.removesuffix("\n}") + ',\n "traceEvents": [\n' + ",\n".join(layout.named_rows())
        # Names are escaped to ASCII; a lone surrogate in a host name or path is all that could not be encoded.
        out.write(head.encode("utf-8", "backslashreplace"))
        for events in _events(layout):
            for count, text in events.pieces():
                out.write(text)
                done += count
                if progress is not None:
                    progress(min(done, layout.total), layout.total)
        out.write(_end_mark(layout) + b"\n]}\n")
    if progress is not None:
        progress(layout.total, layout.total)


def _events(layout: TraceLayout) -> Iterator[Events]:
    result, who = layout.result, layout.who
    yield from host_slices.region_events(result, who, layout.region_tid, layout.collectives)
    yield from operator_slices.operator_events(result, who, layout.operator_tid, layout.collectives)
    yield from layout.collectives.events(who, layout.collective_tid)
    yield from host_slices.marker_events(result, who, layout.marker_tid)
    yield from host_slices.call_events(result, who)
    yield from host_slices.gpu_region_events(result, who, layout.spans, layout.span_tid)
    yield from gpu_slices.work_events(result, who, (layout.kernel_tid, layout.memcpy_tid, layout.memset_tid))
    yield from gpu_slices.graph_events(result, who, layout.graph_tid)
    yield from gpu_slices.sync_events(result, who, layout.sync_tid)
    yield from gpu_slices.overhead_events(result, who, layout.overhead_row)
    yield from counter_tracks.range_events(result, who.clock, layout.range_tid)
    yield from counter_tracks.sample_events(result, who.clock)
    yield from memory_events.memory_events(result, who)
    started = np.zeros(len(result.tables["api_calls"]), bool)
    for name, tid in (("kernels", layout.kernel_tid), ("memcpys", layout.memcpy_tid), ("memsets", layout.memset_tid)):
        yield from host_slices.flow_events(result, who, name, tid, started)
    yield from operator_slices.forward_events(result, who, layout.operator_tid)


def _end_mark(layout: TraceLayout) -> bytes:
    head = ',\n{"name":"Record Window End","ph":"i","s":"g","pid":"Traces","tid":"Trace cuptiprof"'
    return f'{head},"ts":{layout.who.clock.ts(layout.last)}}}'.encode()
