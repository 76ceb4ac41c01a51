"""What a run has to draw on the timeline: work of the GPUs, and what threads of the host did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from cuptiprof.analysis.allocators.allocator_memory import devices, memory_timeline
from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import Float64, match
from cuptiprof.analysis.trees.host_tree import BACKWARD_SCOPE
from cuptiprof.analysis.trees.projection import project
from cuptiprof.analysis.utilization.run_samples import drawn_samples
from cuptiprof.analysis.work.context_devices import ContextDevices
from cuptiprof.analysis.work.counted import units
from cuptiprof.analysis.work.gpu_work import named_work, traced_graphs
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.enums import NO_ID, SAMPLE, SYNC_KINDS
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.data.thread_names import thread_names
from cuptiprof.page.module_runs import module_runs
from cuptiprof.page.timeline_lanes import Lanes, SliceTexts, Track

_TIMED = (
    "kernels", "memcpys", "memsets", "api_calls", "synchronizations", "graph_launches", "regions", "operators", "collectives", "markers",
)  # fmt: skip
_HOST_TRACKS = ("steps", "regions", "modules", "operators", "collectives", "calls", "marks", "samples")
_GPU, _HOST = 0, 1
_REGIONS, _WORK, _WAITS = range(3)
"""tracks of a stream, from above"""
_POINTS = 20_000
"""of a counter track; of more, the largest of neighbours"""


def time_span(result: Result) -> tuple[int, int] | None:
    """First start and last end, ns of the run clock; None: there is nothing to draw."""
    tables = [result.tables[name] for name in _TIMED if len(result.tables[name])]
    if not tables:
        return None
    return min(int(t["start"].min()) for t in tables), max(int(t["end"].max()) for t in tables)


class RunSlices:
    """The slices of a run, collected.

    Attributes:
        lanes: with all of them.
        causes: (number of the first slice of some work, row in ``api_calls`` of each one's launch or -1).
        sizes: (number of the first, bytes of each).
    """

    def __init__(self, result: Result, first: int, last: int) -> None:
        self.result = result
        self.lanes = Lanes(first)
        self.causes: list[tuple[int, Int64]] = []
        self.sizes: list[tuple[int, Array]] = []
        self._gpu_names = dict(zip(*(result.devices[c].tolist() for c in ("device", "name")), strict=True))
        self._thread_names = thread_names(result)
        self._add_work()
        self._add_spans(first, last)
        self._add_waits()
        self._add_collectives()
        self._first_call = self._add_calls()
        self._first_operator = self._add_operators()
        self._add_regions()
        self._add_modules()
        self._add_samples(first, last)

    def cause(self, position: Int64) -> Int64:
        """Number of the launching call of each slice, in the order of ``position``; -1: none."""
        out = np.full(self.lanes.count, -1, np.int64)
        for first, call in self.causes:
            out[first : first + len(call)] = np.where(call >= 0, position[self._first_call + call], -1)
        return out

    def passes(self, position: Int64) -> tuple[Int64, Int64]:
        """Numbers of operators of forward, and of the nodes of backward that belong to them."""
        table = self.result.operators
        made = match(table["forward"], table["instance"])
        node = np.flatnonzero((table["scope"] == BACKWARD_SCOPE) & (table["forward"] > 0) & (made >= 0))
        forward, backward = position[self._first_operator + made[node]], position[self._first_operator + node]
        kept = (forward >= 0) & (backward >= 0)
        order = np.argsort(forward[kept], kind="stable")
        return forward[kept][order], backward[kept][order]

    def _add_work(self) -> None:
        result, api = self.result, self.result.api_calls
        for (names, table), kind in zip(named_work(result), ("kernel", "memcpy", "memset"), strict=True):
            fields = {column: _texts(table, column) for column in ("region", "operator", "module", "line", "nvtx")}
            if kind == "kernel":
                fields |= self._of_launches(table)
            name = SliceTexts(names.ids, names.names)
            times = table["start"], table["end"]
            first = self.lanes.add(kind, self._streams(table), times, name, **fields)
            self.causes.append((first, match(table["correlation_id"], api["correlation_id"])))
            if kind != "kernel":
                self.sizes.append((first, table["bytes"]))
        graphs = result.graph_launches.where(traced_graphs(result))
        numbers, which = renumbered(graphs["graph_id"])
        name = SliceTexts(which, [f"CUDA graph {number}" for number in numbers.tolist()])
        first = self.lanes.add("graph", self._streams(graphs), (graphs["start"], graphs["end"]), name)
        self.causes.append((first, match(graphs["correlation_id"], api["correlation_id"])))

    def _of_launches(self, table: Table) -> dict[str, SliceTexts]:
        configs = self.result.launch_configs
        used, which = renumbered(table["config"])

        def numbers(*columns: str) -> list[str]:
            return [
                " x ".join(map(str, row)) for row in zip(*(configs[c][used].tolist() for c in columns), strict=True)
            ]

        shared = configs["static_shared_memory"].astype(np.int64) + configs["dynamic_shared_memory"]
        return {
            "grid": SliceTexts(which, numbers("grid_x", "grid_y", "grid_z")),
            "block": SliceTexts(which, numbers("block_x", "block_y", "block_z")),
            "registers": SliceTexts(which, numbers("registers_per_thread")),
            "shared_memory": SliceTexts(which, [f"{size:,} bytes" for size in shared[used].tolist()]),
        }

    def _streams(self, table: Table) -> Int64:
        """The track of each row."""
        return self._on_gpu(table["device"], table["stream"], _WORK)

    def _on_gpu(self, devices: Array, streams: Array, what: int) -> Int64:
        """The track of each row; a stream of -1 is the whole GPU."""
        places, which = distinct_rows(devices, streams)
        numbers = []
        for device, stream in places.tolist():
            name = f"stream {stream}" if stream >= 0 else "GPU"
            name += {_REGIONS: ": regions", _WORK: "", _WAITS: ": waits"}[what]
            kind: Literal["work", "gpu"] = "work" if what == _WORK else "gpu"
            numbers.append(self.lanes.track(Track((_GPU, device, stream, what), self.gpu(device), name, kind)))
        return np.array(numbers, np.int64)[which] if numbers else np.zeros(0, np.int64)

    def gpu(self, device: int) -> str:
        name = self._gpu_names.get(device, "")
        return f"GPU {device}: {name}" if name else f"GPU {device}"

    def _threads(self, threads: Array, what: str) -> Int64:
        found, which = renumbered(threads)
        named = self._thread_names
        pid = self.result.metadata.get("pid")
        numbers = [
            self.lanes.track(Track((_HOST, thread != pid, thread, _HOST_TRACKS.index(what)),
                                   named.get(thread, f"thread {thread}") + (" (main)" if thread == pid else ""), what, "host"))
            for thread in found.tolist()
        ]  # fmt: skip
        return np.array(numbers, np.int64)[which] if numbers else np.zeros(0, np.int64)

    def _add_spans(self, first: int, last: int) -> None:
        """Regions as the GPU saw them: from the first to the last of their work on a stream."""
        spans, regions = project(self.result), self.result.regions
        # They begin and end a ns beside their work, which may be the first and the last of the run.
        times = np.maximum(spans["start"], first), np.minimum(spans["end"], last)
        all_names = _texts(regions, "name", always=True)
        name = SliceTexts(all_names.codes[spans["region_row"]], all_names.texts)
        self.lanes.add("GPU region", self._on_gpu(spans["device"], spans["stream"], _REGIONS), times, name)

    def _add_waits(self) -> None:
        """The host for a stream, an event or a GPU, and a stream for an event."""
        waits = self.result.synchronizations
        stream = np.where(waits["stream"] == NO_ID, -1, waits["stream"].astype(np.int64))
        kinds, which = renumbered(waits["type"])
        name = SliceTexts(which.astype(np.int64), [SYNC_KINDS.get(kind, "Unknown") for kind in kinds.tolist()])
        track = self._on_gpu(ContextDevices(self.result)(waits["context"]), stream, _WAITS)
        self.lanes.add("wait", track, (waits["start"], waits["end"]), name)

    def _add_collectives(self) -> None:
        table = self.result.collectives
        fields = {column: _texts(table, column) for column in ("region", "module")}
        track, times = self._threads(table["thread"], "collectives"), (table["start"], table["end"])
        self.lanes.add("collective", track, times, _texts(table, "name", always=True), **fields)

    def _add_calls(self) -> int:
        api = self.result.api_calls
        times = api["start"], api["end"]
        return self.lanes.add("call", self._threads(api["thread"], "calls"), times, _texts(api, "name", always=True))

    def _add_operators(self) -> int:
        table = self.result.operators
        fields = {column: _texts(table, column) for column in ("region", "module", "line", "shapes")}
        times = table["start"], table["end"]
        track = self._threads(table["thread"], "operators")
        return self.lanes.add("operator", track, times, _texts(table, "name", always=True), **fields)

    def _add_modules(self) -> None:
        thread, start, end, paths = module_runs(self.result.operators)
        names = SliceTexts(np.asarray(paths.ids, np.int64), paths.names)
        self.lanes.add("module", self._threads(thread, "modules"), (start, end), names)

    def _add_regions(self) -> None:
        regions, markers = self.result.regions, self.result.markers
        fields = {column: _texts(regions, column) for column in ("domain", "metadata")}
        track, times = self._threads(regions["thread"], "regions"), (regions["start"], regions["end"])
        self.lanes.add("region", track, times, _texts(regions, "name", always=True), **fields)
        is_step = markers["category"] == "step"
        for mask, kind, what in ((is_step, "step", "steps"), (~is_step, "mark", "marks")):
            part = markers.where(mask & (markers["category"] != "gpu_user_annotation"))
            track, times = self._threads(part["thread"], what), (part["start"], part["end"])
            self.lanes.add(kind, track, times, _texts(part, "name", always=True), domain=_texts(part, "domain"))

    def _add_samples(self, first: int, last: int) -> None:
        """A sample is a moment: how long its function ran is not known."""
        found = drawn_samples(self.result, first, last)
        if found is not None:
            track, times = self._threads(found.thread, "samples"), (found.time, found.time)
            functions, which = np.unique(found.functions, return_inverse=True)
            name = SliceTexts(which[found.stack], functions.tolist())
            self.lanes.add("sample", track, times, name, stack=SliceTexts(found.stack, found.stacks))


def counter_tracks_of(result: Result, first: int) -> Iterator[tuple[int, str, str, Int64, Float64]]:
    """(device, name, unit, ns since `first`, values) of levels over time: PyTorch's memory, and hardware counters that were sampled."""
    for device in devices(result):
        memory = memory_timeline(result, device)
        for name, level in (("allocated", memory.allocated), ("reserved", memory.reserved)):
            yield device, f"PyTorch memory {name}", "bytes", *_thinned(memory.time - first, level.astype(np.float64))
    ranges = result.metric_ranges
    rows = np.flatnonzero(ranges["kind"] == SAMPLE)
    unit_of = units(result) if len(rows) else {}
    for name in result.counters if len(rows) else ():
        values = result.counters[name]
        for device in np.unique(ranges["device"][rows]).tolist():
            mine = rows[(ranges["device"][rows] == device) & np.isfinite(values[rows])]
            mine = mine[np.argsort(ranges["start"][mine], kind="stable")]
            if len(mine):
                unit = unit_of.get(name, "")
                yield device, name, unit, *_thinned(ranges["start"][mine].astype(np.int64) - first, values[mine])


def _thinned(time: Int64, values: Float64) -> tuple[Int64, Float64]:
    if len(time) <= _POINTS:
        return time, values
    edges = np.linspace(0, len(time), _POINTS, endpoint=False).astype(np.int64)
    return time[edges], np.maximum.reduceat(values, edges)


def _texts(table: Table, column: str, always: bool = False) -> SliceTexts:
    """A column of texts; the empty one is none, unless `always`."""
    used, which = renumbered(table.codes(column))
    texts = [str(table.strings[code]) for code in used.tolist()]
    codes = which.astype(np.int64)
    if not always and "" in texts:
        codes = np.where(codes == texts.index(""), -1, codes)
    return SliceTexts(codes, texts)
