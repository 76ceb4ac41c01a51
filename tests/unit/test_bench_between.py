"""Verdicts from several processes, and over many points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cuptiprof.stats.between import judge_runs, judge_sweep, student_p, student_quantile
from cuptiprof.stats.verdict import Kind, judge

POINTS, PROCESSES = 100, 20


@pytest.mark.parametrize(
    ("freedom", "probability", "quantile"),
    [(2, 0.975, 4.302653), (9, 0.975, 2.262157), (30, 0.975, 2.042272), (30, 0.99975, 3.8900)],
)  # fmt: skip
def test_student(freedom: int, probability: float, quantile: float) -> None:
    """Tables of the t distribution."""
    assert student_quantile(probability, freedom) == pytest.approx(quantile, rel=5e-3)
    assert student_p(student_quantile(probability, freedom), freedom) == pytest.approx(2 * (1 - probability), rel=1e-6)
    assert student_p(0.0, freedom) == 1


def offsets(rng: np.random.Generator, slower: float = 1.0) -> np.ndarray:
    """Medians of one point in its processes: each is off by 2 %, and known to 0.2 %."""
    return 10_000 * slower * np.exp(0.02 * rng.normal(size=PROCESSES) + 0.002 * rng.normal(size=PROCESSES))


@pytest.mark.parametrize("sweeps", [5, pytest.param(50, marks=pytest.mark.nightly)])
def test_a_sweep_of_unchanged_points_is_not_failed_and_a_slow_one_is_found(sweeps: int) -> None:
    """100 points in 20 processes a side, one of them slower by 5 %."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(sweeps):
        sides = [(offsets(rng), offsets(rng)) for _ in range(POINTS)]
        same = judge_sweep([lambda alpha, s=s: judge_runs(*s, alpha=alpha) for s in sides])  # type: ignore[misc]
        assert not any(v.differs for v in same)
        sides[7] = sides[7][0], offsets(rng, 1.05)
        verdicts = judge_sweep([lambda alpha, s=s: judge_runs(*s, alpha=alpha) for s in sides])  # type: ignore[misc]
        found += verdicts[7].kind is Kind.SLOWER
        assert sum(v.differs for v in verdicts) <= 1
    assert found >= 0.95 * sweeps


def test_one_process_a_side_cannot_tell() -> None:
    """What the samples of one process call certain is unsure, and a margin of chance among processes is none."""
    assert judge_runs([100.0], [103.0]).kind is Kind.UNSURE and judge_runs([100.0], [103.0, 103.1]).kind is Kind.UNSURE
    one = judge_runs([100.0], [103.0, 103.1, 102.9, 103.05])
    assert one.kind is Kind.SLOWER and one.low > 1.01  # the others show how far apart processes are
    assert judge_runs([100.0, 104, 97, 101], [103.0, 99, 105, 102]).kind is Kind.UNSURE
    assert judge_runs([2016.0] * 5, [2048.0] * 5, tick=32.0).kind is not Kind.SLOWER
    with pytest.raises(ValueError, match="above 0"):
        judge_runs([0.0, 1.0], [1.0, 2.0])


def test_claims_over_a_sweep_are_fewer_than_alpha() -> None:
    """Holm: of 40 sweeps of 100 unchanged points nearly all claim something without it."""
    rng, without, claims = np.random.default_rng(2), 0, 0
    for _ in range(8):
        sides = [(rng.normal(100, 1, 30), rng.normal(100, 1, 30)) for _ in range(POINTS)]
        points = [lambda alpha, s=s: judge(*s, alpha=alpha, threshold=0.0) for s in sides]  # type: ignore[misc]
        without += any(p(0.05).differs for p in points)
        claims += any(v.differs for v in judge_sweep(points))
    assert without >= 6 and claims <= 1
    certain = judge_sweep([lambda alpha: judge([100.0, 101] * 50, [110.0, 111] * 50, alpha=alpha, tick=0.0)] * 3)
    assert all(v.kind is Kind.SLOWER for v in certain) and judge_sweep([]) == [] and math.isfinite(certain[0].high)
