"""What was read of the system, summed up by device and counter, as nvprof's system profiling does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.data.clock_state import HOLDS
from cuptiprof.data.result import Result
from cuptiprof.data.system_counters import SYSTEM_COUNTERS, SystemCounter

_LATEST = 1 << 61  # ns: times of a file, which may be any, can be added
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SystemSeries:
    """One counter of one device (-1: the host): `time` (int64, ns of the run clock, ascending) and `value` (float64)."""

    device: int
    counter: SystemCounter
    time: Int64
    value: npt.NDArray[np.float64]

    def codes(self) -> Int64:
        """The values as integers: bits, numbers of events. 0 for what a file holds that is none."""
        real = np.isfinite(self.value) & (np.abs(self.value) < 1 << 53)
        return np.where(real, self.value, 0.0).astype(np.int64)

    def stands_for(self) -> tuple[Int64, Int64]:
        """From when to when each reading is taken to hold, ns: up to the middle between it and its neighbours, but no further than twice the
        usual distance of two readings."""
        gap = np.maximum(np.diff(self.time), 0)
        usual = int(np.median(gap)) if len(gap) else 0
        after = np.minimum(gap // 2, 2 * usual)
        before = np.minimum(gap - gap // 2, 2 * usual)
        return self.time - np.r_[usual // 2, before], self.time + np.r_[after, usual // 2]

    def remark(self) -> str:
        """Of what is no quantity, what was said: which reasons held the clocks for how many readings, which events there were."""
        values = self.codes()
        if self.counter.name == "clock_reasons":
            held = {text: int(np.count_nonzero(values & bit)) for bit, text in HOLDS.items()}
            return ", ".join(f"{text}: {count:,} of {len(values):,}" for text, count in held.items() if count)
        if self.counter.name == "xid":
            return ", ".join(f"{code} ({count:,})" for code, count in sorted(Counter(values.tolist()).items()))
        return ""


def system_series(result: Result) -> list[SystemSeries]:
    """Every series, devices in order and the host last, counters in the order of ``SYSTEM_COUNTERS``; unknown ones are left out."""
    table = result.system_samples
    order = np.lexsort((table["timestamp"], table.codes("counter"), table["device"]))
    device, code = table["device"][order], table.codes("counter")[order]
    edges = np.flatnonzero(
        (np.diff(device, prepend=device[:1] - 1) != 0) | (np.diff(code.astype(np.int64), prepend=-1) != 0)
    )
    found = []
    for rows in np.split(order, edges[1:]) if len(order) else ():
        counter = SYSTEM_COUNTERS.get(str(table["counter"][rows[:1]][0]))
        if counter is not None:
            time, value = np.clip(table["timestamp"][rows], -_LATEST, _LATEST), table["value"][rows]
            found.append(SystemSeries(int(table["device"][rows[0]]), counter, time, value))
    place = {name: i for i, name in enumerate(SYSTEM_COUNTERS)}
    return sorted(found, key=lambda series: (series.device < 0, series.device, place[series.counter.name]))
