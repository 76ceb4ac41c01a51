"""The samples of one function as they come: which are used, which are not and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from cuptiprof.bench.over_ranks import Ranks
from cuptiprof.bench.results.parts import Discard, Float64, KernelTime
from cuptiprof.bench.sampling import MeasuredCall, Sample

MAX_OTHER_WORK_SHARE = 0.1
"""Share of calls that may have launched something else (an autotuner's trial) and be left out; more belong to the function."""


Spoilt = Callable[[Sample], str]
"""Why a sample is not to be used, for the clocks; "": it is."""


@dataclass
class Series:
    """Samples of one call. Whether one is used is decided anew as the clocks during later ones become known."""

    call: MeasuredCall
    taken: list[Sample] = field(default_factory=list)
    longest: Float64 = field(default_factory=lambda: np.empty(0))
    """shape (taken,), of all ranks that measure together: ns, infinity where one cannot use its own; empty: this one is alone"""

    def join(self, ranks: Ranks, spoilt: Spoilt) -> None:
        """Take for each sample the longest of all ranks."""
        if ranks.size > 1:
            self.longest = np.empty(0)
            own = [math.inf if why else s.value for s, why in self._judged(spoilt)]
            self.longest = ranks.largest_each(np.array(own, np.float64))

    def accepted(self, spoilt: Spoilt) -> list[Sample]:
        """The samples in use."""
        return [s for s, why in self._judged(spoilt) if not why]

    def discarded(self, spoilt: Spoilt) -> tuple[Discard, ...]:
        """Those that are not, with the reason."""
        return tuple(Discard(i, s.value, why) for i, (s, why) in enumerate(self._judged(spoilt)) if why)

    def _judged(self, spoilt: Spoilt) -> list[tuple[Sample, str]]:
        usual = self._usual_work()
        out = []
        for i, s in enumerate(self.taken):
            why = s.doubt or spoilt(s)
            if not why and usual is not None and _work(s) != usual:
                why = "launched other kernels than the rest"
            if not why and len(self.longest):
                why = "not usable on another rank" if math.isinf(self.longest[i]) else ""
                s = s if why else replace(s, value=float(self.longest[i]))
            out.append((s, why))
        return out

    def _usual_work(self) -> frozenset[tuple[str, int]] | None:
        """What nearly every call launches; None when calls differ for good."""
        works = Counter(_work(s) for s in self.taken if not s.doubt)
        if len(works) < 2:
            return None
        usual, count = works.most_common(1)[0]
        return usual if count >= (1 - MAX_OTHER_WORK_SHARE) * works.total() else None

    def differs(self) -> bool:
        """Whether calls launch different work, more than now and then."""
        works = {_work(s) for s in self.taken if not s.doubt}
        return len(works) > 1 and self._usual_work() is None


def _work(sample: Sample) -> frozenset[tuple[str, int]]:
    return frozenset((name, n) for name, n, _ in sample.pieces)


def values_of(samples: list[Sample]) -> Float64:
    """Shape (n,), ns of a call."""
    return np.array([s.value for s in samples], np.float64)


def times_of(samples: list[Sample]) -> Float64:
    """Shape (n,), when each was taken, s from the first."""
    return np.array([(s.at - samples[0].at) / 1e9 for s in samples], np.float64)


def spans_of(samples: list[Sample]) -> Float64:
    """Shape (n,), ns; empty where the strategy knows none."""
    spans = np.array([s.span for s in samples], np.float64)
    return np.empty(0) if np.isnan(spans).any() else spans


def clocks_of(samples: list[Sample]) -> Float64:
    """Shape (n,), Hz, NaN where it is not known; empty where it is known of none."""
    clocks = np.array([s.sm_hz for s in samples], np.float64)
    return np.empty(0) if np.isnan(clocks).all() else clocks


def reported_by(samples: list[Sample]) -> dict[str, Float64]:
    """The numbers that the function itself reported with its time, by name, shape (n,) each."""
    names = samples[0].reported if samples else {}
    return {name: np.array([s.reported[name] for s in samples], np.float64) for name in names}


def kernel_times(samples: list[Sample]) -> tuple[KernelTime, ...]:
    """What a call is made of, the longest first: the median over the calls of each kernel's time in a call."""
    names: dict[str, list[tuple[int, float]]] = {}
    for s in samples:
        for name, n, ns in s.pieces:
            names.setdefault(name, []).append((n, ns))
    out = []
    for name, found in names.items():
        missing = len(samples) - len(found)  # calls without this kernel spend nothing in it
        ns = float(np.median([t for _, t in found] + [0.0] * missing))
        out.append(KernelTime(name, sum(n for n, _ in found) / len(samples), ns))
    return tuple(sorted(out, key=lambda k: -k.ns))


def pace_note(series: Series) -> list[str]:
    """A sentence when the GPU waits for the host's launches within a sample."""
    if series.call.paced <= MAX_OTHER_WORK_SHARE * len(series.taken):
        return []
    return [
        "the GPU waits for the host, whose launches take as long as all that is timed: strategy='kernel' leaves that out"
    ]


def gap_note(samples: list[Sample]) -> list[str]:
    """A sentence when the GPU stands idle between the kernels of a call."""
    spans = spans_of(samples)
    if not len(spans):
        return []
    sums = np.array([sum(ns for _, _, ns in s.pieces) for s in samples])
    idle = 1 - float(np.median(sums)) / max(float(np.median(spans)), math.ulp(0))
    return [f"between its kernels the GPU is idle {100 * idle:.0f} % of a call's span"] if idle >= 0.1 else []
