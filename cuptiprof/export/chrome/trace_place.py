"""Where one rank is in a trace of several: what tells its rows, arrows and numbers from those of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.data.codes import Int64
from cuptiprof.data.tables import Table

_PIDS = 1000
_ARROWS_BITS = 32


@dataclass(frozen=True)
class Meetings:
    """Calls of collectives of one rank that others in the trace took part in, in any order.

    Attributes:
        start: of the call's first kernel, ns of the run clock.
        call: its number, equal on all ranks.
        phase: 0: this rank is the first to begin the call, 1: neither, 2: the last.
    """

    start: Int64
    call: Int64
    phase: Int64

    @classmethod
    def none(cls) -> Meetings:
        """With nobody."""
        return cls(*(np.zeros(0, np.int64) for _ in range(3)))

    def of_kernels(self, kernels: Table) -> tuple[Int64, Int64, Int64]:
        """Rows of kernels that are the first of such a call, and its number and phase."""
        rows = np.flatnonzero(kernels["collective"] > 0)
        at = match(kernels["start"][rows], self.start)
        rows, at = rows[at >= 0], at[at >= 0]
        return rows, self.call[at], self.phase[at]


@dataclass(frozen=True)
class TracePlace:
    """One of the ranks of a trace.

    Attributes:
        index: of it among them, from 0.
        name: of its process. labels: what is said beside.
        meetings: arrows to the other ranks.
    """

    rank: int
    index: int
    name: str
    labels: str
    meetings: Meetings

    @property
    def pid(self) -> int:
        """Of the process in the trace: processes of different hosts have the same numbers."""
        return (self.rank + 1) * _PIDS

    @property
    def first_gpu(self) -> int:
        """pid of its GPU 0."""
        return self.pid + 1

    @property
    def first_arrow(self) -> int:
        """Numbers of its own arrows begin here; float64 holds them."""
        return (self.index + 1) << _ARROWS_BITS
