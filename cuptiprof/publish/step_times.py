"""How long training steps took, as a histogram whose buckets are fixed: those of all ranks and days add up."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
"""s; a step of exactly so long is in the bucket below the bound, in Prometheus and in OpenTelemetry."""


class StepHistogram(NamedTuple):
    """``counts``: of steps, for each bound those up to it, and last all of them; ``seconds``: of all steps together."""

    counts: tuple[int, ...]
    seconds: float


class StepTimes:
    """Add on one thread, ask on any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self.listeners: list[Callable[[float], object]] = []

    def add(self, ns: int) -> None:
        """A step ended."""
        seconds = ns / 1e9
        with self._lock:
            self._counts[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds
            for listener in self.listeners:
                listener(seconds)

    def taken(self) -> StepHistogram:
        """What there is now."""
        with self._lock:
            return StepHistogram(tuple(accumulate(self._counts)), self._seconds)
