"""Perfetto's own trace format: names once, arrows from launches to their work, counters; what its viewer reads fastest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from cuptiprof import _core
from cuptiprof.analysis.allocators.allocator_memory import ALLOC, FREED, devices, memory_timeline
from cuptiprof.analysis.utilization.system_summary import system_series
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Array
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.system_tracks import track_name
from cuptiprof.export.chrome.trace_layout import TraceLayout
from cuptiprof.export.output_stream import OutputStream, opened_output
from cuptiprof.export.perfetto.named_slices import NamedSlices
from cuptiprof.export.perfetto.packets import BYTES_UNIT, clock_packet, names_packets
from cuptiprof.export.perfetto.run_slices import add_run
from cuptiprof.export.perfetto.track_tree import TrackTree

_SLICE_BYTES = 100  # about, for a progress bar
_ARROWS_BITS = 42  # of the numbers of a rank's arrows: those to backward begin at 1 << 40


def write(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Writes the trace (gzip if ``compress``): the slices of the Chrome trace on the same rows, in ns.

    Its clock (Perfetto's "boottime") begins where times of the Chrome trace do, and is tied to Unix time.
    """
    layout = TraceLayout(result)
    with opened_output(path, compress) as out:
        out.write(clock_packet(layout.who.clock.base_ns))
        _write_run(layout, out, progress)


def write_ranks(clock: Clock, layouts: Iterable[TraceLayout], path: Path, compress: bool) -> None:
    """Writes a trace of several ranks, one after the other: names that slices have as numbers begin anew with each.

    Args:
        layouts: all by that clock, each with its place.
    """
    with opened_output(path, compress) as out:
        out.write(clock_packet(clock.base_ns))
        for layout in layouts:
            _write_run(layout, out, None)


def _write_run(layout: TraceLayout, out: OutputStream, progress: Progress | None) -> None:
    place = layout.who.place
    tracks = TrackTree(layout)
    slices = NamedSlices(tracks, layout.who.clock, 0 if place is None else (place.index + 1) << _ARROWS_BITS)
    add_run(slices, layout)
    done, total = 0, max(slices.count, 1)
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
    for series in system_series(result):
        whose = "" if series.device >= 0 else "Host: "
        yield from track(series.device, f"{whose}{track_name(series)}", series.time, series.value)
