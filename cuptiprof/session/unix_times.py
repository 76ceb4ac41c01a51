"""Unix time, which others stamp what they tell with, on the run clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof import _core

Int64 = npt.NDArray[np.int64]
_READINGS = 16
_EVERY_NS = 5_000_000_000
_MOST_PAIRS = 1024
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


class ClockPairs:
    """Readings over a session: at its start, every few seconds as it is looked at, at its end. Unix time may be slewed or set in between.

    Bounded: when there are too many every second one goes, and from then on they come half as often. There is no lock, which an
    interruption could leave held: two threads at once cost a reading at most.
    """

    def __init__(self) -> None:
        self._every = _EVERY_NS
        self._pairs = [clock_reading()]

    def look(self) -> None:
        """Any thread, as often as it likes: a reading if the last one is old."""
        if _core.now_ns() - self._pairs[-1].run >= self._every:
            self.add()

    def add(self) -> None:
        """A reading."""
        if len(self._pairs) >= _MOST_PAIRS:
            self._pairs = self._pairs[::2]
            self._every *= 2
        self._pairs.append(clock_reading())

    def rows(self) -> list[list[int]]:
        """Run clock and Unix time of each, ns, in the order of time."""
        return sorted([pair.run, pair.unix] for pair in self._pairs)


def run_times(unix: Int64, clocks: tuple[ClockPair, ClockPair]) -> tuple[Int64, int | None]:
    """Unix times on the run clock, and by how much they may be wrong (ns); None: Unix time jumped."""
    first, last = clocks
    passed = last.unix - first.unix
    drift = (last.run - first.run) - passed
    if abs(drift) > _FASTEST_DRIFT * abs(last.run - first.run) + 2 * (first.error + last.error):
        return unix + (last.run - last.unix), None
    share = (unix - first.unix) / passed if passed else np.zeros(len(unix))
    return unix + (first.run - first.unix) + np.round(share * drift).astype(np.int64), max(first.error, last.error)
