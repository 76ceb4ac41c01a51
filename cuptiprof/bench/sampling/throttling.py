"""Samples while the GPU is throttled: they are not used, the GPU gets time to cool down, and others are taken in their place.

The limits are NVBench's: a sample counts as throttled below 75 % of the default clock; the pause is 50 ms, and longer after several in
a row. NVBench goes on until its time is up; here so many pauses are enough to know that the clock is what it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cuptiprof.bench.sampling.strategy import Sample
from cuptiprof.device.driver import DeviceAttribute
from cuptiprof.device.gpu import Meter

THROTTLED_BELOW = 0.75
"""of the clock that the GPU should have"""
FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 0.5
PAUSES_OF_ONE_LENGTH = 3
"""in a row, then each is twice as long as the one before"""
MAX_PAUSES = 10


class Throttling:
    """Which samples were taken while the clock was held down, and the pauses for that."""

    def __init__(self, gpu: Meter, normal_mhz: float = 0.0) -> None:
        """`normal_mhz`: what the clock was locked to; 0: the highest of the GPU."""
        if not normal_mhz and gpu.device is not None:
            normal_mhz = gpu.attribute(DeviceAttribute.CLOCK_RATE) / 1000
        self._gpu, self._normal_mhz = gpu, normal_mhz
        self._pauses, self._in_a_row, self._waited_s, self._next_s = 0, 0, 0.0, FIRST_PAUSE_S
        self._given_up = False
        self.paused_s = 0.0
        """real time that the pauses took, which is no part of measuring"""

    @property
    def least_mhz(self) -> float:
        """What the clock has to be at least."""
        return 0.0 if self._given_up else THROTTLED_BELOW * self._normal_mhz

    def spoils(self, sample: Sample) -> str:
        """Why a sample is not to be used; "" also once pauses have shown to be of no use."""
        if sample.sm_hz < 1e6 * self.least_mhz:
            return f"SM clock below {100 * THROTTLED_BELOW:.0f} % of {self._normal_mhz:.0f} MHz"
        return ""

    def cool_down(self, throttled: bool) -> bool:
        """After a block of samples: pause if it was throttled. Whether it did; not after :data:`MAX_PAUSES`: then the clock is taken
        as it is."""
        if not throttled:
            self._in_a_row, self._next_s = 0, FIRST_PAUSE_S
            return False
        if self._pauses >= MAX_PAUSES:
            self.take_as_it_is()
            return False
        self._pauses += 1
        self._in_a_row += 1
        if self._in_a_row > PAUSES_OF_ONE_LENGTH:
            self._next_s = min(2 * self._next_s, MAX_PAUSE_S)
        self._waited_s += self._next_s
        began = time.monotonic()
        self._gpu.pause(self._next_s)
        self.paused_s += time.monotonic() - began
        return True

    def take_as_it_is(self) -> None:
        """Whatever the clock is, it is the one that this load gets: under a power cap, which no pause lifts."""
        self._given_up = True

    def notes(self, samples: Sequence[Sample]) -> list[str]:
        """Of those in use."""
        out = []
        if self._pauses:
            out.append(
                f"the GPU was throttled: {self._pauses} pauses of {self._waited_s:.2g} s in all to let it cool down"
            )
        slow = [s.sm_hz / 1e6 for s in samples if self._is_slow(s)]
        if slow:
            usual = sorted(slow)[len(slow) // 2]
            out.append(
                f"the SM clock stays at {usual:.0f} MHz, {100 * usual / self._normal_mhz:.0f} % of what the GPU can: "
                f"{len(slow)} samples are used as they are"
            )
        return out

    def _is_slow(self, sample: Sample) -> bool:
        return sample.sm_hz < THROTTLED_BELOW * self._normal_mhz * 1e6
