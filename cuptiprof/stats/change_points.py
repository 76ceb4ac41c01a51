"""Steps in a series: where its values begin to be others, and stay so.

E-divisive (Matteson and James, A nonparametric approach for multiple change point analysis, JASA 109 (2014)), as MongoDB
(Daly et al., ICPE 2020) and Hunter (Fleming et al., ICPE 2023) use it on results of benchmarks: the split of a series whose sides are
furthest apart in the energy distance, held against the same of random orders of its values; then each side by itself. It supposes
that without a step all orders are equally likely: values that depend on those before (a host that drifts) give steps that no commit made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

MIN_SIDE = 3
"""values that have to be others: one or two are outliers"""
ALPHA = 0.025
FEWEST_ORDERS = 199
MAX_ORDERS = 20_000
BATCH_VALUES = 2_000_000  # distances looked at together
ENOUGH = 20  # orders at least as far apart: whatever the others are, there is no step
SEED = 1


class ChangePoint(NamedTuple):
    """The index of the first value that is another one, and the share of random orders that are split as far."""

    at: int
    p_value: float


def find_steps(values: Sequence[float] | Float64, alpha: float = ALPHA) -> list[ChangePoint]:
    """Steps of a series, in its order. A series without any has one found in at most `alpha`; equal series give equal steps.

    Args:
        values: shape (n,), any unit, finite; logarithms where ratios matter.
    """
    x = np.asarray(values, np.float64)
    found: list[ChangePoint] = []
    parts = [(0, len(x))]
    while parts:
        first, after = parts.pop()
        step = _furthest(x[first:after], alpha)
        if step is not None:
            at = first + step.at
            found.append(ChangePoint(at, step.p_value))
            parts += [(first, at), (at, after)]
    return sorted(found)


def can_find(count: int, alpha: float) -> bool:
    """Whether `count` values can have a step that so few random orders have: the two halves as they are, and exchanged."""
    return count >= 2 * MIN_SIDE and 2 / math.comb(count, count // 2) <= alpha


def _furthest(x: Float64, alpha: float) -> ChangePoint | None:
    if not can_find(len(x), alpha):
        return None
    apart = np.abs(x[:, None] - x[None, :])
    own = _energies(apart, np.arange(len(x))[None])[0]
    best = float(own.max())
    if best <= 0:
        return None
    orders = min(max(FEWEST_ORDERS, math.ceil(1 / alpha)), MAX_ORDERS)
    random = np.random.default_rng(SEED)
    batch = max(1, BATCH_VALUES // len(x) ** 2)
    further, tried = 0, 0
    while tried < orders and further < ENOUGH:
        count = min(batch, orders - tried)
        shuffled = random.permuted(np.tile(np.arange(len(x)), (count, 1)), axis=1)
        further += int((_energies(apart, shuffled).max(axis=1) >= best * (1 - 1e-9)).sum())
        tried += count
    p = (1 + further) / (1 + tried)
    return ChangePoint(int(own.argmax()) + MIN_SIDE, p) if p <= alpha else None


def _energies(apart: Float64, orders: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Float64:
    """Shape (orders, splits): the scaled energy distance of the two sides of each split of each order.

    Args:
        apart: shape (n, n), |a - b| of all pairs; orders: shape (k, n), indices.
    """
    n = len(apart)
    shuffled = apart[orders[:, :, None], orders[:, None, :]]
    of_earlier = (shuffled * np.tri(n, k=-1)).sum(axis=2)
    left = 2 * np.cumsum(of_earlier, axis=1)[:, MIN_SIDE - 1 : n - MIN_SIDE]
    whole = np.cumsum(apart.sum(axis=1)[orders], axis=1)[:, MIN_SIDE - 1 : n - MIN_SIDE]
    m = np.arange(MIN_SIDE, n - MIN_SIDE + 1)
    across, right = whole - left, apart.sum() - 2 * whole + left
    k = n - m
    energies: Float64 = m * k / n * (2 * across / (m * k) - left / (m * m) - right / (k * k))
    return energies
