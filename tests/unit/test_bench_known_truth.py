"""Simulated noise of a known median: at least 93 % of the intervals claimed hold it, equal code is told apart in 5 % at most, and 3 %
are found. The numbers are those of ``python -m benchmarks.known_truth``; here a few runs of them, at night many."""

from __future__ import annotations

import math

import pytest

from benchmarks.known_truth import NOISES, rates

SEES_NO_3_PERCENT = ("ticks of 1 us", "the same, tick not known", "drift")
"""of a tick of 10 %, and of a level that rises all the time, whose series are mostly worth too little for an interval"""
QUICK = [
    name for name in NOISES if "0.9" not in name and "steps" not in name and "drift" not in name
]  # those need many samples


@pytest.mark.parametrize(
    ("name", "runs", "least", "wrong"),
    [(name, 40, 84.0, 10.0) for name in QUICK] + [pytest.param(n, 400, 93.0, 5.0, marks=pytest.mark.nightly) for n in NOISES],
)  # fmt: skip
def test_intervals_hold_the_truth_and_verdicts_are_right(name: str, runs: int, least: float, wrong: float) -> None:
    found = rates(name, runs)
    assert math.isnan(found.held) or found.held >= least, found
    assert found.wrong <= wrong, found
    if not name.startswith(SEES_NO_3_PERCENT):
        assert found.claimed == 100 and found.found >= 95, found
