"""Step curves at common times, against what a loop over all changes finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuptiprof.analysis.arrays.step_curves import step_curves

Curve = list[tuple[int, int]]


def arrays(curve: Curve) -> tuple[np.ndarray, list[np.ndarray]]:
    return np.array([t for t, _ in curve], np.int64), [np.array([v for _, v in curve], np.int64)]


def test_two_curves_by_hand() -> None:
    found = step_curves([arrays([(10, 1), (30, 2)]), arrays([(20, 5), (30, 0)])], 100)
    assert found.time.tolist() == [10, 20, 30, 30] and not found.is_peak
    assert [v.tolist() for v in found.values] == [[1, 1, 2, 2], [0, 5, 5, 0]]


def test_nothing() -> None:
    found = step_curves([arrays([])], 10)
    assert len(found.time) == 0 and [len(v) for v in found.values] == [0]


def largest(curve: Curve, begin: int, end: int) -> int:
    """In [begin, end): what holds at the beginning, and all that comes in it."""
    held = 0
    for t, v in curve:
        if t < begin:
            held = v
    return max([held, *(v for t, v in curve if begin <= t < end)])


@pytest.mark.parametrize("seed", range(40))
def test_stretches_have_their_largest(seed: int) -> None:
    chance = random.Random(seed)
    curves = []
    for _ in range(chance.randint(1, 3)):
        times = sorted(chance.randrange(chance.choice([5, 40, 10_000])) for _ in range(chance.randint(1, 60)))
        curves.append([(t, chance.randrange(100)) for t in times])
    most = chance.randint(1, 20)
    found = step_curves([arrays(c) for c in curves], most)
    changes = sum(map(len, curves))
    if changes <= most:
        assert len(found.time) == changes and not found.is_peak
        return
    assert len(found.time) == most and found.is_peak
    ends = [*found.time.tolist()[1:], max(t for c in curves for t, _ in c) + 1]
    for curve, values in zip(curves, found.values, strict=True):
        for begin, end, value in zip(found.time.tolist(), ends, values.tolist(), strict=True):
            assert value == largest(curve, begin, end), (begin, end)
        assert values.max() == max(0, *(v for _, v in curve))
