"""The clocks of the GPU while it is measured, and which samples they spoil."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

from cuptiprof.data.clock_state import POWER_CAP, ClockReader, ClockState

MAX_CLOCK_CHANGE = 0.03
"""Relative change of the SM clock that spoils samples: several steps of 15 MHz, which the GPU takes all the time."""

MAX_READING_GAP_NS = 20_000_000
"""The clocks are read at least so often. A reading takes NVML some 50 us, and the GPU has to be waited for."""


class ClockLog:
    """Readings while samples are taken, and which samples they spoil."""

    def __init__(self, reader: ClockReader, now: Callable[[], int], synchronize: Callable[[], None]) -> None:
        self._reader, self._now, self._synchronize = reader, now, synchronize
        self._times: list[int] = []
        self._states: list[ClockState | None] = []
        self.least_mhz = 0.0
        """a clock below it is never the usual one, however often it is read"""

    def read(self) -> None:
        """Wait for the GPU and read the clocks."""
        self._synchronize()
        self._times.append(self._now())
        self._states.append(self._reader.read())

    def tick(self) -> None:
        """Read them if the last reading is :data:`MAX_READING_GAP_NS` ago."""
        if self._now() - self._times[-1] >= MAX_READING_GAP_NS:
            self.read()

    @property
    def readings(self) -> int:
        """How many there are so far."""
        return len(self._states)

    def slowed_since(self, reading: int) -> bool:
        """Whether a reading showed a slowdown, from this one on."""
        return any(s is not None and s.slowdown for s in self._states[reading:])

    def capped_since(self, reading: int) -> bool:
        """Whether one showed the power cap."""
        return any(s is not None and s.reasons & POWER_CAP for s in self._states[reading:])

    def judge(self) -> Callable[[int], str]:
        """When a sample began (ns of the host's clock) -> why it is not to be used, or "".

        A sample is spoilt by a slowdown in the reading before or after it, and by an SM clock there that is more than
        :data:`MAX_CLOCK_CHANGE` away from the median of all readings. If half of the readings are, no clock is the right one: then
        clocks spoil nothing (and a note says so).
        """
        usual, moved, wanders = self._moves()
        reasons = []
        for state, off in zip(self._states, moved, strict=True):
            why = state.slowdown if state is not None else ""
            if state is not None and not why and off and not wanders:
                why = f"SM clock at {state.sm_mhz:.0f} MHz, usually {usual:.0f}"
            reasons.append(why)

        def spoilt(at: int) -> str:
            after = bisect.bisect_right(self._times, at)
            around = reasons[max(after - 1, 0) : after + 1]
            return next((why for why in around if why), "")

        return spoilt

    def _moves(self) -> tuple[float, list[bool], bool]:
        """The usual SM clock in MHz, whether each reading is off it, and whether that is so of half of them."""
        clocks = sorted(s.sm_mhz for s in self._states if s is not None and s.sm_mhz > 0)
        clocks = [c for c in clocks if c >= self.least_mhz] or clocks
        usual = clocks[len(clocks) // 2] if clocks else 0.0

        def off(mhz: float) -> bool:
            return abs(mhz - usual) > MAX_CLOCK_CHANGE * usual

        moved = [s is not None and off(s.sm_mhz) for s in self._states]
        return usual, moved, sum(map(off, clocks)) * 2 >= max(len(clocks), 1)

    def notes(self) -> list[str]:
        """What a reader must know of the clocks, beyond the samples that were discarded."""
        states = self._known()
        if len(states) < len(self._states):
            why = self._reader.why_not
            return [f"clocks were not read: {why}"] if why else []
        out = []
        capped = sum(1 for s in states if s.reasons & POWER_CAP)
        if capped * 10 >= len(states):
            out.append(f"power cap in {100 * capped / len(states):.0f} % of the readings")
        sm = [s.sm_mhz for s in states]
        if max(sm) - min(sm) > 2 * MAX_CLOCK_CHANGE * max(sm) or self._moves()[2]:
            out.append(f"the SM clock went between {min(sm):.0f} and {max(sm):.0f} MHz")
        return out

    def summary(self) -> dict[str, Any]:
        """Median readings: "sm_mhz", "memory_mhz", "temperature", "power_w"; empty where there are none."""
        states = self._known()
        names = ("sm_mhz", "memory_mhz", "temperature", "power_w") if states else ()
        return {n: sorted(getattr(s, n) for s in states)[len(states) // 2] for n in names}

    def _known(self) -> list[ClockState]:
        return [s for s in self._states if s is not None]
