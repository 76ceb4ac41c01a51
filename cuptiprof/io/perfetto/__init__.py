"""Perfetto's own trace format: names once, arrows from launches to their work, counters; what its viewer reads fastest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cuptiprof import _core
from cuptiprof.analysis.allocator_memory import ALLOC, FREED, devices, memory_timeline
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Array
from cuptiprof.io.chrome.trace_layout import TraceLayout
from cuptiprof.io.output_stream import opened_output
from cuptiprof.io.perfetto.named_slices import NamedSlices
from cuptiprof.io.perfetto.protobuf import BYTES_UNIT, clock_packet, names_packets
from cuptiprof.io.perfetto.run_slices import add_run
from cuptiprof.io.perfetto.track_tree import TrackTree

_SLICE_BYTES = 100  # about, for a progress bar


def write(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Writes the trace (gzip if ``compress``): the slices of the Chrome trace on the same rows, in ns.

    Its clock (Perfetto's "boottime") begins where times of the Chrome trace do, and is tied to Unix time.
    """
    layout = TraceLayout(result)
    tracks = TrackTree(layout)
    slices = NamedSlices(tracks, layout.who.clock)
    add_run(slices, layout)
    done, total = 0, max(slices.count, 1)
    with opened_output(path, compress) as out:
        out.write(clock_packet(layout.who.clock.base_ns))
        for data in (*names_packets(slices.tables()), *tracks.packets()):
            out.write(data)
        for data in slices.packets():
            out.write(data)
            done += len(data) // _SLICE_BYTES
            if progress is not None:
                progress(min(done, total), total)
        for data in _counters(layout, tracks):
            out.write(data)
    if progress is not None:
        progress(total, total)


def _counters(layout: TraceLayout, tracks: TrackTree) -> Iterator[bytes]:
    """Samples of hardware counters, and what PyTorch's allocator has; a track a device and counter."""
    result, clock = layout.result, layout.who.clock

    def track(device: int, name: str, times: Array, values: Array, unit: int | None = None) -> Iterator[bytes]:
        number, descriptor = tracks.counter(device, name, unit)
        yield descriptor
        yield _core.perfetto_counter(number, clock.since(times), np.asarray(values, np.float64))

    ranges = result.metric_ranges
    samples = np.flatnonzero(ranges["kind"] == SAMPLE)
    for name in result.counters if len(samples) else ():
        values = result.counters[name][samples]
        for device in np.unique(ranges["device"][samples]).tolist():
            mine = (ranges["device"][samples] == device) & np.isfinite(values)
            yield from track(device, name, ranges["start"][samples[mine]], values[mine])
    actions = result.allocator_events["action"]
    for device in devices(result):
        timeline = memory_timeline(result, device)
        rows = np.flatnonzero(np.isin(actions[timeline.rows], (ALLOC, FREED)))
        for what, column in (("allocated", timeline.allocated), ("reserved", timeline.reserved)):
            yield from track(device, f"PyTorch memory {what}", timeline.time[rows], column[rows], BYTES_UNIT)
