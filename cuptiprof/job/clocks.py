"""Clocks of ranks on different hosts, aligned by what they did together: a collective ends on all ranks of its group at nearly the same time.

TraceLens (AMD) matches collectives by group and index in the same way; the rest is a robust straight line for each rank: its offset, and its
drift. Ranks that share no group with the reference are reached through those that do. What is left over is the residual, which stands beside
every number that two clocks made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cuptiprof.job.rank_calls import Calls, Int64

Float64 = npt.NDArray[np.float64]

FEWEST_ENDS = 5
"""of collectives that a rank must share with others: fewer do not tell drift from chance"""
_REFINEMENTS = 8
_REWEIGHTINGS = 12
_HUBER = 1.345  # 95 % efficient for normal errors: Huber, Robust Statistics (1981)
_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class RankClock:
    """How the clock of a rank goes by that of the reference: the reference's time is ``t - (offset_ns + drift * (t - at_ns))``.

    Attributes:
        at_ns: in the middle of what was aligned.
        residual_ns: median distance of the ends of collectives, as aligned, from those of the other ranks.
        ends: collectives that it was aligned on.
    """

    rank: int
    offset_ns: float
    drift: float
    at_ns: float
    residual_ns: float
    ends: int

    def aligned(self, time_ns: npt.ArrayLike) -> Float64:
        """Times on the rank's clock, ns, on that of the reference, float64, exact to the ns for runs shorter than a hundred days."""
        t = np.asarray(time_ns, np.float64)
        return np.asarray(t - (self.offset_ns + self.drift * (t - self.at_ns)))

    def moved(self, time_ns: Int64) -> Int64:
        """The same in whole ns, int64, in the same order; what takes less than 10 ms takes as long, within 1 ns."""
        ahead = self.offset_ns + self.drift * (time_ns - self.at_ns)
        return np.asarray(time_ns - np.rint(ahead).astype(np.int64), np.int64)


@dataclass(frozen=True)
class Alignment:
    """Clocks by rank; `unaligned` ranks have none, and nothing that compares times with them is said."""

    reference: int
    clocks: dict[int, RankClock]
    unaligned: list[int]

    @property
    def residual_ns(self) -> float:
        """The largest of a rank but the reference; NaN: there is no other."""
        others = [clock.residual_ns for rank, clock in self.clocks.items() if rank != self.reference]
        return max(others, default=float("nan"))


def align_clocks(calls: Calls, ranks: Sequence[int]) -> Alignment:
    """All ranks by the lowest one that shares the most collectives with others.

    Args:
        ranks: of the job, also those without calls.
    """
    use = calls.together & calls.whole & (calls.end > 0)
    if not use.any():
        first = min(ranks, default=0)
        return Alignment(first, {}, list(ranks))
    numbers, rank = np.unique(calls.rank[use], return_inverse=True)
    _, call = np.unique(calls.call[use], return_inverse=True)
    ends = calls.end[use]
    zero = int(ends.min())
    t = (ends - zero).astype(np.float64)  # small enough that float64 has fractions of a ns
    order = np.argsort(rank, kind="stable")
    rank, call, t = rank[order], call[order], t[order]
    edges = np.searchsorted(rank, np.arange(len(numbers) + 1))
    rows = [slice(int(a), int(b)) for a, b in pairwise(edges)]
    lines, reference = _spread(rows, call, t)
    lines = _refined(lines, rows, call, t, reference)
    clocks = {}
    together = _together(lines, rows, call, t)
    for i, line in lines.items():
        own, of = t[rows[i]], together[call[rows[i]]]
        known = np.isfinite(of)
        off = np.abs(own - line(own) - of)[known]
        clocks[int(numbers[i])] = RankClock(
            int(numbers[i]), line.offset, line.drift, line.at + zero, float(np.median(off)) if len(off) else 0.0, int(known.sum())
        )  # fmt: skip
    return Alignment(int(numbers[reference]), clocks, [r for r in ranks if r not in clocks])


@dataclass(frozen=True)
class _Line:
    """What a clock is ahead at its time t: ``offset + drift * (t - at)``."""

    offset: float
    drift: float
    at: float

    def __call__(self, t: Float64) -> Float64:
        return np.asarray(self.offset + self.drift * (t - self.at))


def _spread(rows: list[slice], call: Int64, t: Float64) -> tuple[dict[int, _Line], int]:
    """From the reference to all ranks that share collectives with one that is reached, those that share the most first."""
    counts = np.zeros(int(call.max()) + 1, np.int64)
    np.add.at(counts, call, 1)
    shared = np.array([int((counts[call[r]] > 1).sum()) for r in rows])
    reference = int(shared.argmax())
    lines = {reference: _Line(0.0, 0.0, float(np.median(t[rows[reference]])))}
    waiting = set(range(len(rows))) - {reference}
    while waiting:
        reached = _together(lines, rows, call, t)
        common = {i: int(np.isfinite(reached[call[rows[i]]]).sum()) for i in waiting}
        best = max(common.values())
        if best < FEWEST_ENDS:
            break
        for i in [i for i, n in common.items() if 2 * n >= best]:
            of = reached[call[rows[i]]]
            known = np.isfinite(of)
            own = t[rows[i]][known]
            lines[i] = _fitted(own, own - of[known])
            waiting.discard(i)
    return lines, reference


def _refined(lines: dict[int, _Line], rows: list[slice], call: Int64, t: Float64, reference: int) -> dict[int, _Line]:
    """Each rank by all that took part, again and again, and then all by the reference."""
    for _ in range(_REFINEMENTS):
        together = _together(lines, rows, call, t)
        new = {}
        for i in lines:
            own, of = t[rows[i]], together[call[rows[i]]]
            known = np.isfinite(of)
            new[i] = _fitted(own[known], (own - of)[known]) if known.sum() >= FEWEST_ENDS else lines[i]
        base = new[reference]
        lines = {i: _less(line, base) for i, line in new.items()}
    return lines


def _less(line: _Line, base: _Line) -> _Line:
    """A rank's line by the reference's own time, which `base` says is ahead of the mean of all."""
    drift = (line.drift - base.drift) / (1 - base.drift)
    common = line.at - line.offset
    ahead = (base.offset + base.drift * (common - base.at)) / (1 - base.drift)
    return _Line(line.offset - ahead, drift, line.at)


def _together(lines: dict[int, _Line], rows: list[slice], call: Int64, t: Float64) -> Float64:
    """When each call ended: the median of the ranks whose clocks are known; NaN: fewer than one."""
    some = sorted(lines)
    at = np.concatenate([t[rows[i]] - lines[i](t[rows[i]]) for i in some])
    of = np.concatenate([call[rows[i]] for i in some])
    order = np.lexsort((at, of))
    at, of = at[order], of[order]
    first = np.searchsorted(of, np.arange(int(call.max()) + 1))
    after = np.searchsorted(of, np.arange(int(call.max()) + 1), side="right")
    out = np.full(len(first), np.nan)
    has = after > first
    low, high = (first + (after - first - 1) // 2)[has], (first + (after - first) // 2)[has]
    out[has] = (at[low] + at[high]) / 2
    return out


def _fitted(t: Float64, ahead: Float64) -> _Line:
    """A straight line that outliers do not move: from the medians of its thirds (Tukey), then Huber's weights."""
    at = float(np.median(t))
    x = t - at
    order = np.argsort(x, kind="stable")
    third = max(len(x) // 3, 1)
    low, high = order[:third], order[-third:]
    run = float(np.median(x[high]) - np.median(x[low]))
    drift = float(np.median(ahead[high]) - np.median(ahead[low])) / run if run > 0 else 0.0
    offset = float(np.median(ahead - drift * x))
    for _ in range(_REWEIGHTINGS):
        left = ahead - offset - drift * x
        scale = _TO_SIGMA * float(np.median(np.abs(left - np.median(left))))
        if scale <= 0:
            break
        weight = np.minimum(1.0, _HUBER * scale / np.maximum(np.abs(left), 1e-9))
        mean = float(np.average(x, weights=weight))
        spread = float((weight * (x - mean) ** 2).sum())
        drift = float((weight * (x - mean) * ahead).sum()) / spread if spread > 0 else 0.0
        offset = float(np.average(ahead - drift * x, weights=weight))
    return _Line(offset, drift, at)
