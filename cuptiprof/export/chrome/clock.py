"""The trace's times: microseconds since ``baseTimeNanoseconds``."""

from __future__ import annotations

import numpy as np

from cuptiprof.data.codes import Int64
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.export.chrome.json_text import microseconds

WEEK = 7 * 86_400 * 10**9
# Kineto counts from the last multiple of three months (of 30.44 days): times of its traces that have a base lie below.
KINETO_PERIOD = 7_889_238 * 10**9


class Clock:
    """Between the run clock and the trace's times.

    Viewers read times as float64, which holds microseconds since 1970 to a quarter of one only: slices that follow each other
    overlap then, and Perfetto drops them. So times count from the beginning of a week (of Unix time). It is not the run's own
    beginning, since the ranks of one job must agree on it: Holistic Trace Analysis compares their times as they are. A trace of
    Kineto's that has a base keeps it, so that it can stand beside traces of other ranks.

    Attributes:
        base_ns: Unix time of the trace's time 0.
        unix_offset: Unix time is run clock + ``unix_offset``.
    """

    def __init__(self, result: Result, first: int) -> None:
        pairs = result.metadata.get("clock_pairs") or [[0, 0]]
        run, unix = min(pairs, key=lambda pair: abs(pair[0] - first))
        self.unix_offset = int(unix) - int(run)
        if self.unix_offset > 0 and "origin" in result.metadata and 0 <= first < KINETO_PERIOD:
            self.base_ns = self.unix_offset
        else:
            self.base_ns = max((first + self.unix_offset) // WEEK * WEEK, 0)
        self._zero = self.base_ns - self.unix_offset

    def since(self, ns: Array) -> Int64:
        """Times of the run clock as the trace's, int64 ns."""
        return np.asarray(ns, np.int64) - self._zero

    def ts(self, ns: int) -> str:
        """One of them as text."""
        return microseconds(self.since(np.array([ns])))[0]
