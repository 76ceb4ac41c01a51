"""What was read of the system as counter tracks, one a device and counter, and what befell the GPUs as slices beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from cuptiprof.analysis.utilization.system_events import SystemEvent
from cuptiprof.analysis.utilization.system_summary import SystemSeries, system_series
from cuptiprof.data.result import Result
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.json_text import Events


def track_name(series: SystemSeries) -> str:
    """ "Power (W)"."""
    unit = series.counter.unit
    return f"{series.counter.label} ({unit})" if unit else series.counter.label


def event_slices(found: Sequence[SystemEvent], clock: Clock) -> Iterator[Events]:
    """What befell the GPUs, beside the counters it is read from: a row a kind, XIDs as instants."""
    for is_instant in (False, True):
        part = [event for event in found if (event.start == event.end) == is_instant]
        times = np.array([(event.start, event.end) for event in part], np.int64).reshape(-1, 2)
        texts = [
            f'"name":{json.dumps(event.kind)},"pid":"GPU {event.device} System","tid":{json.dumps(event.kind)},'
            f'"args":{{"detail":{json.dumps(event.text())}}}'
            for event in part
        ]
        events = Events(len(part))
        events.same(
            ',\n{"ph":"i","s":"p","cat":"system_event",' if is_instant else ',\n{"ph":"X","cat":"system_event",'
        )
        events.text("", np.arange(len(part)), texts).time(',"ts":', clock.since(times[:, 0]))
        if not is_instant:
            events.time(',"dur":', times[:, 1] - times[:, 0])
        yield events.same("}")


def system_counters(result: Result, clock: Clock) -> Iterator[Events]:
    """One value of a counter a reading."""
    for series in system_series(result):
        whose = f"GPU {series.device} System" if series.device >= 0 else "Host System"
        events = Events(len(series.time))
        events.same(f',\n{{"ph":"C","cat":"system","name":{json.dumps(track_name(series))},"pid":"{whose}"')
        events.time(',"ts":', clock.since(series.time))
        yield events.number(f',"args":{{{json.dumps(series.counter.name)}:', series.value).same("}}")
