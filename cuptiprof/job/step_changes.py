"""Where the steps of a job begin to take another time, and stay so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.change_points import find_steps

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

_MOST_PIECES = 200
_FEWEST_PIECES = 24
_BY_CHANCE = 1.64
"""standard errors: values that do not depend on each other have so high an autocorrelation in 5 % of series"""


def step_changes(steps: Int64, longest_ns: Int64) -> list[tuple[int, float, float]]:
    """(number of the first step that takes another time, median before, median after, ns), in order (``stats.change_points``).

    A step takes long where the one before did (a busy host, a warm GPU), which looks like a change to a test of random orders. So medians of
    pieces are looked at, which are doubled until what lies between the changes no longer depends on the piece before (first-order
    autocorrelation of the residuals; batch means: Law and Kelton, Simulation Modeling and Analysis).

    Args:
        steps, longest_ns: shape (n,), the longest of the ranks of each step.
    """
    size = -(-len(steps) // _MOST_PIECES)
    while len(steps):
        # All of one size: medians of fewer values are spread wider, which is a change, too.
        count = len(steps) // size
        values = np.log(np.maximum(np.median(longest_ns[: count * size].reshape(count, size), axis=1), 1.0))
        points = [0, *(point.at for point in find_steps(values)), count]
        if count // 2 < _FEWEST_PIECES or not _depends(values, points):
            edges = [at * size for at in points[:-1]] + [len(steps)]
            medians = [float(np.median(longest_ns[a:b])) for a, b in pairwise(edges)]
            inner = zip(edges[1:-1], medians, medians[1:], strict=False)
            return [(int(steps[at]), before, after) for at, before, after in inner]
        size *= 2
    return []


def _depends(values: Float64, points: list[int]) -> bool:
    """Whether a value tells something of the next one, apart from the changes."""
    left = np.concatenate([values[a:b] - np.median(values[a:b]) for a, b in pairwise(points)])
    order = np.argsort(np.argsort(left, kind="stable"), kind="stable").astype(np.float64)  # outliers count as any
    order -= order.mean()
    spread = float(order @ order)
    return bool(np.ptp(left) > 0 and float(order[1:] @ order[:-1]) / spread > _BY_CHANCE / np.sqrt(len(left)))
