"""Hardware counters in the trace: as arguments of the kernels they were measured on, and PM samples as counter tracks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.data.codes import Int64
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.json_text import Events, Mask, quoted

# Arguments that a kernel slice has anyway; a metric of that name gets another.
_TAKEN = frozenset({"queued", "device", "context", "stream", "correlation", "grid", "block", "cluster", "occupancy"})


def add_kernel_metrics(events: Events, result: Result) -> None:
    """The metrics of each kernel as members, with a comma before each."""
    if not len(result.metric_ranges):
        return
    counters = result.counters
    names = list(counters)
    keys = quoted(f"metric {name}" if name in _TAKEN else name for name in names)
    for name, key in zip(names, keys, strict=True):
        values = counters.of_kernels(result.kernels, name)
        events.number(f",{key}:", values, ~np.isnan(values))


def is_range(result: Result) -> Mask:
    """Of the rows of ``metric_ranges`` those that are no samples."""
    mask: Mask = result.tables["metric_ranges"]["kind"] != SAMPLE
    return mask


def range_events(result: Result, clock: Clock, tid: Int64) -> Iterator[Events]:
    """Launches and regions that were counted, with their counters, as Kineto writes them and HTA's counter analysis reads them."""
    rows = is_range(result)
    table = result.tables["metric_ranges"].where(rows)
    names = kernel_names(table, True)
    events = Events(len(table)).text(',\n{"ph":"X","cat":"cuda_profiler_range","name":', names.ids, quoted(names.names))
    events.number(',"pid":', table["device"]).number(',"tid":', tid).time(',"ts":', clock.since(table["start"]))
    events.time(',"dur":', table["end"] - table["start"]).same(',"args":{')
    counters = result.counters
    any_yet = np.zeros(len(table), bool)
    for name, key in zip(counters, quoted(counters), strict=True):
        values = counters[name][rows]
        there = np.isfinite(values)
        events.same(",", any_yet & there).number(f"{key}:", values, there)
        any_yet |= there
    yield events.same("}}")


def sample_events(result: Result, clock: Clock) -> Iterator[Events]:
    """One counter track a device and metric; the value of a sample stands at its start."""
    ranges = result.metric_ranges
    rows = np.flatnonzero(ranges["kind"] == SAMPLE)
    if not len(rows):
        return
    counters = result.counters
    rows = rows[np.argsort(ranges["start"][rows], kind="stable")]
    for name, key in zip(counters, quoted(counters), strict=True):
        values = counters[name][rows]
        there = np.flatnonzero(~np.isnan(values))
        at = rows[there]
        events = Events(len(there))
        events.same(f',\n{{"ph":"C","cat":"hardware_counters","name":{key}')
        events.number(',"pid":"GPU ', ranges["device"][at]).time(' Counters","ts":', clock.since(ranges["start"][at]))
        yield events.number(f',"args":{{{key}:', values[there]).same("}}")
