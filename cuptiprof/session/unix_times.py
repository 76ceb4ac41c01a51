"""Unix time, which others stamp what they tell with, on the run clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof import _core

Int64 = npt.NDArray[np.int64]
_READINGS = 16
_FASTEST_DRIFT = 2e-3
"""Unix time is slewed by half of that at most; what is more was a jump"""


@dataclass(frozen=True)
class ClockPair:
    """The run clock and Unix time, ns, and by how much the run clock may be wrong."""

    run: int
    unix: int
    error: int


def clock_reading() -> ClockPair:
    """The best of some readings: the run clock before and after Unix time."""
    best = ClockPair(0, 0, 1 << 62)
    for _ in range(_READINGS):
        before, unix, after = _core.now_ns(), _core.unix_ns(), _core.now_ns()
        if after - before < 2 * best.error:
            best = ClockPair((before + after) // 2, unix, (after - before + 1) // 2)
    return best


def run_times(unix: Int64, clocks: tuple[ClockPair, ClockPair]) -> tuple[Int64, int | None]:
    """Unix times on the run clock, and by how much they may be wrong (ns); None: Unix time jumped."""
    first, last = clocks
    passed = last.unix - first.unix
    drift = (last.run - first.run) - passed
    if abs(drift) > _FASTEST_DRIFT * abs(last.run - first.run) + 2 * (first.error + last.error):
        return unix + (last.run - last.unix), None
    share = (unix - first.unix) / passed if passed else np.zeros(len(unix))
    return unix + (first.run - first.unix) + np.round(share * drift).astype(np.int64), max(first.error, last.error)
