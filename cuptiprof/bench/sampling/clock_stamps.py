"""The SM clock during each sample, as the GPU itself counts it: stamps before samples and one after the last.

A stamp is enqueued outside of what is timed. The GPU's time moves in steps of up to a microsecond, so short samples take the clock of
what is around them as well.
"""

from __future__ import annotations

import math

import numpy as np

from cuptiprof.bench.results.parts import Float64
from cuptiprof.device.clock_kernel import GPU_TIME_STEP_NS
from cuptiprof.device.gpu import Meter

WINDOW_NS = 1_000_000
"""The clock of a sample is that of so long around it: its error by the steps of the GPU's time is then 0.1 %."""
STAMPS_APART_NS = 100_000
"""at least: of shorter samples some have none of their own"""
MIN_WINDOW_NS = 50 * GPU_TIME_STEP_NS
"""Where there is less, the clock is not known: the steps would be more than 2 % of it."""


class ClockStamps:
    """Stamps of a block of samples.

    Args:
        streams: that the samples' work uses. A stamp in one of several shifts them against each other, so there are only two then.
    """

    def __init__(self, gpu: Meter, samples: int, streams: int = 1) -> None:
        self._gpu, self._begun = gpu, 0
        self._apart_ns: float = STAMPS_APART_NS if streams <= 1 else math.nan  # which nothing reaches
        self._last_at, self._given_ns = 0, 0.0
        gpu.prepare_stamps(samples + 1)

    def before_sample(self, ns: float = math.inf) -> None:
        """`ns`: what the GPU needs for it at least: the host may be far ahead."""
        now = self._gpu.now()
        if not self._begun or max(now - self._last_at, self._given_ns) >= self._apart_ns:
            self._gpu.stamp(self._begun)
            self._last_at, self._given_ns = now, 0.0
        self._given_ns += ns
        self._begun += 1

    def after_last(self) -> None:
        self._gpu.stamp(self._begun)

    def rates(self) -> Float64:
        """Shape (samples,), Hz, in the order taken; NaN: not known. When the GPU has finished."""
        return rates_between(self._gpu.stamps(self._begun + 1))


def rates_between(stamps: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> Float64:
    """The clock between each two stamps, Hz, shape (n - 1,), over :data:`WINDOW_NS` around where they are closer.

    Args:
        stamps: shape (n, 2): GPU time, ns, and cycles; zeros: none was written.
    """
    written = stamps[:, 0] > 0
    if written.sum() < 2:
        return np.full(max(len(stamps) - 1, 0), np.nan)
    first = stamps[written][0]
    ns, cycles = (stamps[written] - first).astype(np.float64).T
    so_far = np.cumsum(written)
    last = len(ns) - 1
    before, after = np.clip(so_far[:-1] - 1, 0, last), np.clip(so_far[:-1], 0, last)
    middle = (ns[before] + ns[after]) / 2
    low = np.minimum(before, np.searchsorted(ns, middle - WINDOW_NS / 2, "right") - 1).clip(0)
    high = np.maximum(after, np.searchsorted(ns, middle + WINDOW_NS / 2, "left")).clip(max=last)
    took, counted = ns[high] - ns[low], cycles[high] - cycles[low]
    known = (took >= MIN_WINDOW_NS) & (counted > 0)
    return np.where(known, counted / np.where(known, took, 1.0) * 1e9, np.nan)
