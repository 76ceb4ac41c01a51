from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cuptiprof.bench.statistics import median_interval


@dataclass(frozen=True)
class Stop:
    reason: str


class Rule(Protocol):
    def __call__(self, samples: np.ndarray, elapsed_s: float) -> Stop | None: ...


@dataclass(frozen=True)
class TimeLimit:
    seconds: float

    def __call__(self, samples, elapsed_s):
        return Stop(f"time limit of {self.seconds:g} s") if elapsed_s >= self.seconds else None


@dataclass(frozen=True)
class RelativeHalfWidth:
    def __call__(self, samples, elapsed_s):
        return Stop("half width") if len(samples) > 50 and median_interval(samples).half_width < 0.005 else None


def default_rule():
    return RelativeHalfWidth()
