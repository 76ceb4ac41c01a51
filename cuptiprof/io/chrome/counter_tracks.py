"""Hardware counters in the trace: as arguments of the kernels they were measured on, and PM samples as counter tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.io.chrome.clock import Clock
from cuptiprof.io.chrome.json_text import quoted

CHUNK = 1 << 15
# Arguments that a kernel slice has anyway; a metric of that name gets another.
_TAKEN = frozenset({"queued", "device", "context", "stream", "correlation", "grid", "block", "cluster", "occupancy"})


def kernel_args(result: Result) -> Callable[[slice], list[str]]:
    """Function of a slice of ``kernels``: for each row the JSON members of its metrics, with a comma before each."""
    if not len(result.metric_ranges):
        return lambda rows: [""] * len(range(*rows.indices(len(result.kernels))))
    counters = result.counters
    names = list(counters)
    keys = quoted(f"metric {name}" if name in _TAKEN else name for name in names)
    columns = [counters.of_kernels(result.kernels, name) for name in names]

    def texts(rows: slice) -> list[str]:
        out = [""] * len(range(*rows.indices(len(result.kernels))))
        for key, column in zip(keys, columns, strict=True):
            values = column[rows]
            for i in np.flatnonzero(~np.isnan(values)).tolist():
                out[i] += f",{key}:{float(values[i])!r}"
        return out

    return texts


def sample_events(result: Result, clock: Clock) -> Iterator[list[str]]:
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
        for first in range(0, len(there), CHUNK):
            part = there[first : first + CHUNK]
            yield [
                f'{{"ph":"C","cat":"hardware_counters","name":{key},"pid":"GPU {device} Counters","ts":{ts},'
                f'"args":{{{key}:{value!r}}}}}'
                for device, ts, value in zip(
                    ranges["device"][rows[part]].tolist(),
                    clock.ts(ranges["start"][rows[part]]),
                    values[part].tolist(),
                    strict=True,
                )
            ]
