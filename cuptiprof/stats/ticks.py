"""The steps of a timer in the times that it made: how wide they are, and what they hide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.correlation import Array, finite_samples

COARSE_TICK_SHARE = 1 / 3
"""Assumption: a tick that holds more of the samples says nothing of where in it the times lie."""
MIN_TICK_VALUES = 5
"""Assumption: values that occur twice or more, from which a tick can be told although samples lie in none of them mostly."""
SAME_VALUE = 1 / 16
"""Part of a tick within which two readings are one: a timer's steps are rounded when they become ns."""
MAX_READINGS = 3
"""Readings of one step: one off by rounding to either side. More of them are a timer that resolves more."""
MIN_ON_GRID = 0.9
"""Share of the samples that must lie on the steps of a known timer; else it resolves more than is said of it."""


@dataclass(frozen=True)
class Ticked:
    """Samples by the steps of their timer.

    Attributes:
        samples: shape (n,), on the steps where those are known.
        tick: the step; 0: none that matters; NaN: there is one, for many samples are equal, and it cannot be told.
        coarse: one step holds more than a third of the samples.
        certain: the step is the timer's, not only no less than it: samples may be spread over it.
    """

    samples: Array
    tick: float
    coarse: bool
    certain: bool = True


def on_ticks(samples: Array, tick: float | None) -> Ticked:
    """Samples, shape (n,), by the steps of a timer of resolution `tick` (None: found), in their unit.

    Where they show that their timer resolves more than `tick`, what they show counts.

    Raises:
        ValueError: a negative tick.
    """
    values, counts = np.unique(samples, return_counts=True)
    if tick is not None:
        if not 0 <= tick < math.inf:
            raise ValueError("a tick is not negative")
        if tick == 0:
            return Ticked(samples, 0.0, False)
        origin = float(values[counts.argmax()])
        steps = (samples - origin) / tick
        if np.mean(np.abs(steps - np.rint(steps)) <= SAME_VALUE) >= MIN_ON_GRID:
            snapped = origin + tick * np.rint(steps)
            left, sizes = np.unique(snapped, return_counts=True)
            if values.size <= MAX_READINGS * left.size:
                return Ticked(snapped, tick, float(sizes.max()) / samples.size > COARSE_TICK_SHARE)
    coarse = float(counts.max()) / samples.size > COARSE_TICK_SHARE
    return Ticked(samples, timer_tick(samples), coarse, int((counts > 1).sum()) >= MIN_TICK_VALUES)


def timer_tick(samples: npt.ArrayLike) -> float:
    """Resolution of the timer that made the samples, in their unit; 0 when they show none; NaN when they show one whose size
    cannot be told: more than a third are equal, and too few others say in which steps they come.

    The widest step of which all differences are multiples, so never less than the timer's own. Told from two values that occur
    twice or more if more than a third of the samples are equal, else from five of them.

    Raises:
        ValueError: no samples, or samples that are not finite.
    """
    values, counts = np.unique(finite_samples(samples), return_counts=True)
    coarse = counts.max() > COARSE_TICK_SHARE * counts.sum() and counts.sum() > 1 and counts.max() > 1
    unknown = math.nan if coarse else 0.0
    again = values[counts > 1]
    if again.size < (2 if coarse else MIN_TICK_VALUES):
        return unknown
    step = _common_step(np.diff(again))
    multiples = (values - again[0]) / step
    return step if np.abs(multiples - np.rint(multiples)).max() < 1e-3 else unknown


def _common_step(differences: Array) -> float:
    """The greatest common divisor of differences above 0, to a thousandth of the smallest (Euclid)."""
    least = float(differences.min())
    step = least
    for other in differences.tolist():
        a, b = other, step
        while b > 1e-3 * least:
            a, b = b, abs(a - b * round(a / b))
        step = a
    return step


def spread_ties(ordered: Array, tick: float) -> Array:
    """Samples in ascending order with those of one tick spread evenly over it, (n,) -> (n,).

    The median of grouped data: Yule, An Introduction to the Theory of Statistics (1911), chapter VII. Without it an
    interval ends on ticks, and covers too much or, as a claim on the real time, nothing.
    """
    if not tick > 0:
        return ordered
    first = np.searchsorted(ordered, ordered, "left")
    count = np.searchsorted(ordered, ordered, "right") - first
    place = (np.arange(ordered.size) - first + 0.5) / count - 0.5
    return np.asarray(ordered + tick * place)
