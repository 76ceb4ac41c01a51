"""Where everything goes in a picture of a run: the origin of time, and the row of each slice."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, group_stats
from cuptiprof.analysis.arrays.track_rows import HOST_ROW_STEP, ROW_STEP, nested_rows, serial_rows
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.trees.projection import project
from cuptiprof.analysis.utilization.run_samples import drawn_samples
from cuptiprof.analysis.utilization.system_events import system_events
from cuptiprof.analysis.utilization.system_summary import system_series
from cuptiprof.analysis.work.gpu_work import traced_graphs
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.enums import NO_ID
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.data.thread_names import thread_names
from cuptiprof.export.chrome import counter_tracks, gpu_slices
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.collective_members import CollectiveSlices
from cuptiprof.export.chrome.header import TrackRow, row_names
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.chrome.trace_place import TracePlace

_TIMED = (
    "kernels",
    "memcpys",
    "memsets",
    "api_calls",
    "synchronizations",
    "overhead",
    "graph_launches",
    "regions",
    "operators",
    "markers",
)

_SAMPLE_ROW = 400
"""of a thread, beyond those of slices that overlap"""


def _timed(result: Result) -> Result:
    """Without work whose times nobody knows (0, counted in the losses): it has no place in a picture of time."""
    tables = dict(result.tables)
    for name in ("kernels", "memcpys", "memsets"):
        table = tables[name]
        known = (table["start"] != 0) | (table["end"] != 0)
        if not known.all():
            tables[name] = table.where(known)
    return Result(tables, result.metadata, result.losses, result.host_samples)


class TraceLayout:
    """Rows and times of the slices of a run.

    Attributes:
        result: the run without work whose times nobody knows.
        who: process and External ids, and the clock.
        spans: regions projected to the GPU.
        rows: those that need a name, by (pid, tid).
        devices: ordinals of the GPUs.
        samples: of the host, put beside the run; None: none were.
        befell: what befell the GPUs while the system was read.
        first, last: when the first slice begins or reading was made, and the last ends, ns of the run clock.
        total: slices and arrows, for a progress bar.
    """

    def __init__(self, result: Result, clock: Clock | None = None, place: TracePlace | None = None) -> None:
        """
        Args:
            clock: of the trace; None: that of the run.
            place: of the run in a trace of several ranks.
        """
        self.result = result = _timed(result)
        tables = result.tables
        starts = [int(tables[name]["start"].min()) for name in _TIMED if len(tables[name])]
        ends = [int(tables[name]["end"].max()) for name in _TIMED if len(tables[name])]
        self.befell = system_events(result)
        read = [series.time for series in system_series(result)]
        starts += [int(time[0]) for time in read] + [event.start for event in self.befell]
        ends += [int(time[-1]) for time in read] + [event.end for event in self.befell]
        self.first, self.last = min(starts, default=0), max(ends, default=0)
        self.who = Identity(
            result, clock or Clock(result, self.first - 1), place
        )  # a region's span begins 1 ns before its work
        self.spans = project(result)
        self.samples = drawn_samples(result, self.first, self.last)
        self._gpu_rows()
        self._host_rows()
        flows = sum(len(tables[name]) for name in ("kernels", "memcpys", "memsets"))
        self.total = sum(len(tables[name]) for name in _TIMED) + len(self.span_tid) + flows

    def _gpu_rows(self) -> None:
        tables = self.result.tables
        graphs = tables["graph_launches"].where(traced_graphs(self.result))
        work = [tables["kernels"], tables["memcpys"], tables["memsets"], graphs]
        device, stream, start, end = (
            np.concatenate([table[column] for table in work]).astype(np.int64)
            for column in ("device", "stream", "start", "end")
        )
        self.rows: dict[tuple[int, int], TrackRow] = {}
        group = device * (1 << 32) + stream
        row = serial_rows(group, start, end)
        tid = self._tid(device, stream, row, "")
        edges = np.cumsum([len(table) for table in work])[:-1]
        self.kernel_tid, self.memcpy_tid, self.memset_tid, self.graph_tid = np.split(tid, edges)

        # Regions are drawn around their work on the stream's own row. Where work overlaps, it is spread over several
        # rows and the regions get rows of their own.
        crowded = group_stats(group[row > 0], row[row > 0])
        spans = self.spans
        span_group = spans["device"] * (1 << 32) + spans["stream"]
        span_row = nested_rows(span_group, spans["start"], spans["end"])
        at = match(span_group, crowded.key)
        depth = np.where(at >= 0, crowded.maximum[at] + 1, 0) if len(crowded.key) else np.zeros(len(at), np.int64)
        self.span_tid = self._tid(spans["device"], spans["stream"], span_row + depth, " regions", depth + span_row)

        # A wait on a stream lasts while the stream works: it never fits into the stream's own row.
        syncs = tables["synchronizations"]
        sync_device = self.who.device_of_context(syncs["context"])
        sync_stream = np.where(syncs["stream"] == NO_ID, -1, syncs["stream"].astype(np.int64))
        sync_row = serial_rows(sync_device * (1 << 33) + sync_stream, syncs["start"], syncs["end"])
        self.sync_tid = self._tid(sync_device, sync_stream, sync_row + 500, " waits", sync_row + 1)
        ranges = tables["metric_ranges"].where(counter_tracks.is_range(self.result))
        range_row = nested_rows(ranges["device"], ranges["start"], ranges["end"])
        device = ranges["device"].astype(np.int64)
        self.range_tid = self._tid(device, np.full(len(ranges), -1), range_row + 800, "counters", range_row + 1)
        overhead = tables["overhead"]
        self.overhead_row = nested_rows(np.zeros(len(overhead)), overhead["start"], overhead["end"])
        self.devices = {pid for pid, _ in self.rows} | set(self.who.gpu_pids(tables["devices"]["device"]).tolist())
        if len(overhead):
            self.rows[gpu_slices.OVERHEAD_PID, 0] = TrackRow(gpu_slices.OVERHEAD_PID, 0, "CUPTI overhead", 0)

    def _tid(self, device: Array, stream: Array, row: Array, what: str, further: Array | None = None) -> Int64:
        """tid of each slice; rows are named on the way."""
        tid = np.asarray(stream + row * ROW_STEP, np.int64)
        further = row if further is None else further
        for pid, number, on, k in distinct_rows(self.who.gpu_pids(device), tid, stream, further)[0].tolist():
            name = f"stream {on} " if on >= 0 else f"Device {self.who.gpu_of(pid)} "
            if number != on:
                name += f"({what.strip() or 'overlapping'} {k})"
            self.rows.setdefault((pid, number), TrackRow(pid, number, name, on))
        return tid

    def _host_rows(self) -> None:
        tables, pid = self.result.tables, self.who.pid
        self.collectives = CollectiveSlices(self.result)
        alone = tables["collectives"].where(self.collectives.alone)
        named_slices = [*(tables[name] for name in ("regions", "operators", "markers")), alone]
        thread, start, end = (
            np.concatenate([table[column] for table in named_slices]).astype(np.int64)
            for column in ("thread", "start", "end")
        )
        row = nested_rows(thread, start, end)
        tid = thread + row * HOST_ROW_STEP
        edges = np.cumsum([len(table) for table in named_slices])[:-1]
        self.region_tid, self.operator_tid, self.marker_tid, self.collective_tid = np.split(tid, edges)
        named = thread_names(self.result)
        for number, on, k in distinct_rows(tid, thread, row)[0].tolist():
            name = named.get(on, f"thread {on}") + (f" (overlapping {k})" if k else "")
            self.rows.setdefault((pid, number), TrackRow(pid, number, name, on))
        api = tables["api_calls"]
        for owner, number in distinct_rows(self.who.pids(api["process"]), api["thread"])[0].tolist():
            key = (owner, number)
            name = named.get(number, f"thread {number}") if key[0] == pid else f"thread {number}"
            self.rows.setdefault(key, TrackRow(*key, name, number))
        self.sample_tid = np.zeros(0, np.int64)
        if self.samples is not None:
            self.sample_tid = self.samples.thread + _SAMPLE_ROW * HOST_ROW_STEP
            for on in np.unique(self.samples.thread).tolist():
                tid = on + _SAMPLE_ROW * HOST_ROW_STEP
                self.rows.setdefault((pid, tid), TrackRow(pid, tid, named.get(on, f"thread {on}") + " (samples)", on))

    def named_rows(self) -> list[str]:
        ts = self.who.clock.ts(self.first)
        devices = self.devices - {gpu_slices.OVERHEAD_PID, self.who.pid}
        return row_names(self.result, ts, self.who, devices, self.rows.values())
