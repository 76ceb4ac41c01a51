"""What befell the GPUs while they were read: what held their clocks and from when to when, errors of memory, XIDs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, Intervals
from cuptiprof.analysis.arrays.held_values import Float64, HeldValues
from cuptiprof.analysis.arrays.intervals import time_within, union_of
from cuptiprof.analysis.utilization.system_summary import SystemSeries, system_series
from cuptiprof.data.clock_state import HELD_TIMES, HOLDS
from cuptiprof.data.result import Result
from cuptiprof.data.system_counters import XIDS

XID = "XID"
_COUNTED = {
    "ecc_corrected": "ECC corrected",
    "ecc_uncorrected": "ECC uncorrected",
    "remapped_rows": "rows remapped",
    "retired_pages": "pages retired",
}
"""Counters that only grow -> what it is when one has grown."""
_NOTHING = np.zeros(0, np.int64)
ERRORS = (XID, "ECC uncorrected", "rows remapped", "pages retired")
"""Kinds that say that a GPU is at fault."""
KINDS = (*HOLDS.values(), XID, *_COUNTED.values())


@dataclass(frozen=True)
class SystemEvent:
    """One event, as far as the readings tell.

    Attributes:
        device: ordinal of the GPU.
        kind: what held the clocks (``clock_state.HOLDS``), "XID", or what was counted ("ECC corrected", ...).
        start, end: ns of the run clock. Of what is counted: the readings between which it came; of an XID both are when it was read.
        value: of held clocks the mean SM clock meanwhile, MHz (nan: not read); of an XID its number; else how many there were.
    """

    device: int
    kind: str
    start: int
    end: int
    value: float

    @property
    def is_hold(self) -> bool:
        return self.kind in HOLDS.values()

    @property
    def until(self) -> int:
        """Its end, exclusive; what has no length is in its ns."""
        return max(self.end, self.start + 1)

    def text(self) -> str:
        """What is said of its value."""
        if self.is_hold:
            return f"SM clock {self.value:.0f} MHz" if np.isfinite(self.value) else ""
        if self.kind == XID:
            name = XIDS.get(int(self.value), "")
            return f"{self.value:.0f}" + (f": {name}" if name else "")
        return f"{self.value:,.0f}"


class GpuReadings:
    """What was read of one GPU that tells what befell it."""

    def __init__(self, device: int, series: Sequence[SystemSeries]) -> None:
        self.device = device
        self._series = {one.counter.name: one for one in series}

    def held(self, *kinds: str) -> Intervals:
        """When any of these held its clocks."""
        series = self._series.get("clock_reasons")
        bits = sum(bit for bit, kind in HOLDS.items() if kind in kinds)
        if series is None:
            return union_of(_NOTHING, _NOTHING)
        start, end = series.stands_for()
        rows = series.codes() & bits != 0
        return union_of(start[rows], end[rows])

    def share(self, kind: str, start: Int64, end: Int64) -> Float64:
        """Part of each [start, end) in which `kind` held its clocks, 0..1: by the driver's own count of the time where there is one."""
        series = next(
            (self._series[name] for name, of in HELD_TIMES.items() if of == kind and name in self._series), None
        )
        if series is None:
            held = self.held(kind)
            share: Float64 = time_within(held, start, end) / np.maximum(end - start, 1)
            return share
        real = np.isfinite(series.value)
        time, percent = series.time[real], np.clip(series.value[real], 0.0, 100.0)
        counted = HeldValues(time[:-1], time[1:], percent[1:] / 100)  # each since the reading before
        return np.nan_to_num(counted.mean(start, end))

    @cached_property
    def clock(self) -> HeldValues:
        """The SM clock, MHz."""
        series = self._series.get("sm_clock")
        if series is None:
            return HeldValues(_NOTHING, _NOTHING, np.zeros(0))
        real = np.isfinite(series.value) & (series.value > 0)
        start, end = series.stands_for()
        return HeldValues(start[real], end[real], series.value[real])

    def events(self) -> Iterator[SystemEvent]:
        """All of them, kind by kind."""
        for kind in HOLDS.values():
            held = self.held(kind)
            clocks = self.clock.mean(held.start, held.end).tolist()
            for start, end, mhz in zip(held.start.tolist(), held.end.tolist(), clocks, strict=True):
                yield SystemEvent(self.device, kind, start, end, mhz)
        for name, kind in _COUNTED.items():
            series = self._series.get(name)
            if series is not None:
                real = np.isfinite(series.value)
                time, value = series.time[real], series.value[real]
                for i in np.flatnonzero(np.diff(value) > 0).tolist():
                    yield SystemEvent(self.device, kind, int(time[i]), int(time[i + 1]), float(value[i + 1] - value[i]))
        xids = self._series.get("xid")
        if xids is not None:
            for time, code in zip(xids.time.tolist(), xids.codes().tolist(), strict=True):
                if code > 0:
                    yield SystemEvent(self.device, XID, time, time, float(code))


def gpu_readings(result: Result) -> list[GpuReadings]:
    """Every GPU of which anything was read, by ordinal."""
    series = system_series(result)
    devices = sorted({one.device for one in series if one.device >= 0})
    return [GpuReadings(device, [one for one in series if one.device == device]) for device in devices]


def system_events(result: Result) -> list[SystemEvent]:
    """What befell the GPUs, by time.

    Clocks are read every so often (``metadata["system"]["interval_ns"]``): an event is as long as the readings that saw it stand for, and one
    between two readings is not seen.
    """
    found = [event for gpu in gpu_readings(result) for event in gpu.events()]
    return sorted(found, key=lambda event: (event.start, event.end, event.device, event.kind))
