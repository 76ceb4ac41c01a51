"""Two runs of one program are not told apart, and an operator that takes 5 % longer is named first. The numbers are those of
``python -m benchmarks.diff_known_truth``; here a few pairs of them, at night more."""

from __future__ import annotations

import pytest

from benchmarks.diff_known_truth import NOISES, Noise, judge_pairs

QUIET = (Noise(60, 0.0, 0.0), Noise(60, 0.02, 0.0), Noise(200, 0.02, 0.5))
"""Noises in which 5 % can be seen."""


@pytest.mark.parametrize(
    ("noise", "pairs", "most", "least"),
    [(noise, 8, 1, 7 if noise in QUIET else 0) for noise in NOISES[:8]]
    + [(noise, 8, 1, 0) for noise in NOISES[8:]]
    + [pytest.param(n, 100, 5, 90 if n in QUIET else 0, marks=pytest.mark.nightly) for n in NOISES],
)  # fmt: skip
def test_equal_runs_are_not_told_apart_and_5_percent_are_found(noise: Noise, pairs: int, most: int, least: int) -> None:
    false, found, first = judge_pairs(noise, pairs)
    assert false <= most
    assert found >= least and first >= least
