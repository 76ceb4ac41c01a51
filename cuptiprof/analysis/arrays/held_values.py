"""Values that each hold for a time, and their mean over any other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, Intervals

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeldValues:
    """`value` (float64, finite) holds from `start` to `end` (int64, ns), which are in order and do not overlap."""

    start: Int64
    end: Int64
    value: Float64

    def mean(self, start: Int64, end: Int64) -> Float64:
        """Of each [start, end), weighted by how long each value held in it; nan where none did."""
        held, total = (until - before for until, before in zip(self._until(end), self._until(start), strict=True))
        out: Float64 = np.divide(total, held, out=np.full(len(start), np.nan), where=held > 0)
        return out

    def within(self, some: Intervals, *, inside: bool = True) -> HeldValues:
        """What is left of them in `some`, which do not overlap, or outside of them."""
        cuts = np.unique(np.concatenate([self.start, self.end, some.start, some.end]))
        low, high = cuts[:-1], cuts[1:]
        mine = np.searchsorted(self.start, low, side="right") - 1
        kept = _inside(self.start, self.end, low) & (_inside(some.start, some.end, low) == inside)
        return HeldValues(low[kept], high[kept], self.value[mine[kept]])

    def _until(self, time: Int64) -> tuple[Float64, Float64]:
        """How long values held up to each time, and their integral."""
        took = (self.end - self.start).astype(np.float64)
        before = np.r_[0.0, np.cumsum(took)], np.r_[0.0, np.cumsum(took * self.value)]
        at = np.searchsorted(self.start, time, side="right")
        last = np.maximum(at - 1, 0)
        if not len(took):
            return np.zeros(len(time)), np.zeros(len(time))
        part = np.where(at > 0, np.minimum(time - self.start[last], took[last]), 0.0)
        return before[0][last] + part, before[1][last] + part * self.value[last]


def _inside(start: Int64, end: Int64, time: Int64) -> npt.NDArray[np.bool_]:
    at = np.searchsorted(start, time, side="right") - 1
    mask: npt.NDArray[np.bool_] = at >= 0
    mask[mask] = time[mask] < end[at[mask]]
    return mask
