"""torch.profiler traces (Kineto's Chrome JSON) -> Result.

Times are microseconds with up to three decimals and up to 1.7e15 in size: more digits than a float64 has. The native reader
(csrc/trace) makes integer ns of them; everything else is done over columns.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.analysis.collectives.collective_work import kernels_of_collectives
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError
from cuptiprof.io.kineto.backward_threads import BackwardThreads
from cuptiprof.io.kineto.call_rows import DRIVERS, RUNTIMES, calls, overhead, synchronizations
from cuptiprof.io.kineto.collective_rows import collectives, tell_of_collectives
from cuptiprof.io.kineto.counter_rows import counter_ranges
from cuptiprof.io.kineto.device_rows import devices, distributed
from cuptiprof.io.kineto.event_rows import LONGEST, EventRows
from cuptiprof.io.kineto.gpu_rows import ON_MTIA, DeviceEvents, copies, kernels, sets
from cuptiprof.io.kineto.launch_places import LaunchPlaces
from cuptiprof.io.kineto.marker_rows import ON_GPU, gpu_annotations
from cuptiprof.io.kineto.memory_rows import allocations, memory_events
from cuptiprof.io.kineto.operator_rows import Arrows, Operators
from cuptiprof.io.kineto.region_rows import RegionRows, placed
from cuptiprof.io.kineto.skipped import Skipped
from cuptiprof.io.kineto.stack_rows import FUNCTIONS, StackRows
from cuptiprof.io.kineto.system_rows import BEFELL, system_samples
from cuptiprof.io.kineto.trace_columns import COUNTED, READ, TraceColumns, new_scanner
from cuptiprof.io.kineto.trace_values import json_value, number
from cuptiprof.io.trace_file import pieces

_INSTANT = "cpu_instant_event"
_OF_THE_HOST = ("cpu_op", "user_annotation")
_KEPT = frozenset(
    {
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
        ON_MTIA,
        ON_GPU,
        _INSTANT,
        FUNCTIONS,
        *RUNTIMES,
        *DRIVERS,
        "cuda_sync",
        *_OF_THE_HOST,
        "overhead",
        COUNTED,
        READ,
        BEFELL,
    }
)
_SAID_OTHERWISE = frozenset({"", "none", "trace", "fwdbwd"})
"""The frame around a profile, and arrows to backward."""


class _Import:
    """The tables of one file, one after the other."""

    def __init__(self, columns: TraceColumns, strings: Strings, skipped: Skipped, base: int) -> None:
        self.columns, self.strings, self.skipped = columns, strings, skipped
        self.losses: dict[str, int] = {}
        self.tables: dict[str, Table] = {}
        self.metrics: list[str] = []
        self._base = base

    def _rows(self, *categories: str) -> EventRows:
        return EventRows(self.columns, self.skipped, self.columns.rows(categories))

    def _put(self, name: str, made: dict[str, Any], rows: int | None = None) -> Table:
        count = len(next(iter(made.values()))) if rows is None and made else rows or 0
        table = Table.from_columns(name, made, self.strings, rows=count)
        self.tables[name] = table
        return table

    def run(self) -> None:
        arrows = Arrows.of(*(
            EventRows(self.columns, self.skipped, self.columns.rows(("fwdbwd",), phase), is_slice=False) for phase in "sf"
        ))  # fmt: skip
        stacks = StackRows(self._rows(FUNCTIONS), self.strings)
        operators = Operators(self._rows("cpu_op"), arrows, self.strings, stacks)
        regions = RegionRows(self._rows("user_annotation"), operators, BackwardThreads(operators), self.strings)
        of_devices = DeviceEvents.of(self.columns)
        ran, copied, waited = (EventRows(self.columns, self.skipped, events) for events in of_devices[:3])
        self.skipped.not_kept("event_record", len(of_devices.marks))
        call_rows = self._rows(*RUNTIMES, *DRIVERS)
        work = {
            "kernels": kernels(ran, self._base, call_rows.event),
            "memcpys": copies(copied),
            "memsets": sets(self._rows("gpu_memset")),
        }
        api_calls = calls(call_rows)
        places = LaunchPlaces(api_calls, list(work.values()), operators, regions, stacks)
        self._put("launch_configs", work["kernels"].configs)
        for name, rows in work.items():
            self._put(name, rows.columns)
        self._put("api_calls", api_calls)
        waits = [synchronizations(rows) for rows in (self._rows("cuda_sync"), waited)]
        synced, records = (
            {name: np.r_[part[name], more[name]] for name in part} for part, more in zip(*waits, strict=True)
        )
        self._put("synchronizations", synced)
        once = np.unique(records["event_sync_id"], return_index=True)[1]
        self._put("cuda_events", {name: column[once] for name, column in records.items()})
        self._put("markers", gpu_annotations(self._rows(ON_GPU), self.strings))
        self._put("overhead", overhead(self._rows("overhead")))
        self._put("regions", regions.columns())
        self._put("operators", operators.columns(*placed(regions, operators.thread, operators.start).values()))
        self._put("stacks", stacks.columns())
        self._collectives(regions)
        self._counters()
        self._memory(operators, regions)
        read = EventRows(self.columns, self.skipped, self.columns.rows((READ,), "C"), is_slice=False)
        self._put("system_samples", system_samples(read, self.strings))
        self.losses["orphan_correlations"] = places.orphans
        self.losses["texts_lost"] = regions.cut + places.cut
        self._count_what_is_not_kept()

    def _collectives(self, regions: RegionRows) -> None:
        events = tell_of_collectives(self.columns, self.columns.rows(_OF_THE_HOST))
        made = collectives(EventRows(self.columns, self.skipped, events), self.strings)
        table = self._put("collectives", {**made, **placed(regions, made["thread"], made["start"])})
        kernels_table = self.tables["kernels"]
        kernels_table.configs = self.tables["launch_configs"]
        if len(table):
            api_calls = self.tables["api_calls"]
            self.tables["kernels"] = kernels_table.with_column(
                "collective", lambda kernels: kernels_of_collectives(table, kernels, api_calls)
            )

    def _counters(self) -> None:
        ranges, metrics, self.metrics = counter_ranges(self._rows(COUNTED), self.strings)
        self._put("metric_ranges", ranges)
        self._put("metrics", metrics)

    def _memory(self, operators: Operators, regions: RegionRows) -> None:
        without, named = (self.columns.rows((name,), "i") for name in ("", _INSTANT))
        instants = np.sort(np.r_[without, named])
        of_gpu, of_cpu = memory_events(self.columns, instants)
        rows = EventRows(self.columns, self.skipped, of_gpu, is_slice=False)
        self._put("allocator_events", allocations(rows, operators, regions))
        self.skipped.not_kept("[memory] of the CPU", len(of_cpu))
        self.skipped.not_kept(_INSTANT, len(named) - int(np.isin(np.r_[of_gpu, of_cpu], named).sum()))

    def _count_what_is_not_kept(self) -> None:
        for category, count in self.columns.counts().items():
            if category not in _KEPT and category not in _SAID_OTHERWISE:
                self.skipped.not_kept(category, count)


def import_trace(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a torch.profiler trace (JSON, plain or compressed by gzip or Zstandard).

    Kernels, copies and sets carry the thread of their launch call and the innermost user annotation open there at the
    call, and the innermost operator. Events that make no sense are counted in ``losses["unknown_records"]``, and
    ``metadata["skipped_first"]`` names the first; work whose call is not in the file in ``losses["orphan_correlations"]``;
    what there is no place for, by category, in ``metadata["not_kept"]``.

    Raises:
        ResultError: unreadable, truncated, too large, or not such a trace.
    """
    file = Path(path)
    scanner = new_scanner()
    try:
        for piece, done, total in pieces(file):
            scanner.feed(piece)
            if progress is not None and total:
                progress(done, total)
        scanner.finish()
    except ResultError as e:
        raise e if str(file) in str(e) else ResultError(f"{file}: {e.message}", hint=e.hint) from None
    if not scanner.has_array:
        raise ResultError(f"{file}: no traceEvents: not a torch.profiler trace")
    beside = {name: json_value(text) for name, text in scanner.beside().items()}
    strings, skipped = Strings(), Skipped()
    skipped.strangers(scanner.strangers)
    base = number(beside.get("baseTimeNanoseconds"))
    base = base if 0 <= base < LONGEST else 0
    made = _Import(TraceColumns(scanner, strings), strings, skipped, base)
    made.run()
    tables = made.tables
    properties = devices(beside.get("deviceProperties"), skipped)
    tables["devices"] = Table.from_columns("devices", properties, strings)
    group = distributed(beside.get("distributedInfo"))
    metadata: dict[str, Any] = {
        "format": 1,
        "device": f"import:{file.name}",
        "simulated": False,
        "origin": {"file": file.name, "trace": str(beside.get("traceName", ""))},
        "rank": max(min(number(group.get("rank")), 2**31 - 1), 0),
        **({"distributed": group} if group else {}),
        **skipped.metadata(),
    }
    # Kineto makes up the times of counters.
    spans = [t for name, t in tables.items() if name != "metric_ranges" and "start" in t and len(t)]
    if spans:
        begin = int(min(np.min(t["start"]) for t in spans))
        metadata["start_time_ns"] = begin
        metadata["stop_time_ns"] = int(max(np.max(t["end"]) for t in spans))
        metadata["clock_pairs"] = [[begin, begin + base]]
    return Result(tables, metadata, {**made.losses, "unknown_records": skipped.count})
