"""Steps in series of known noise: how often one is found where there is none, and how often one is missed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cuptiprof.stats.change_points import ALPHA, MIN_SIDE, can_find, find_steps

SERIES, RUNS, NOISE, STEP = 200, 30, 0.01, 0.05

Noise = Callable[[np.random.Generator, int], "np.ndarray[tuple[int], np.dtype[np.float64]]"]


def normal(rng: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return rng.normal(0, NOISE, n)


def skewed(rng: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return rng.gamma(2, NOISE / np.sqrt(2), n)


def with_outliers(rng: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """One run in fifty took 20 % longer."""
    return rng.normal(0, NOISE, n) + np.where(rng.random(n) < 0.02, 0.2, 0.0)


@pytest.mark.parametrize("noise", [normal, skewed, with_outliers])
def test_series_without_a_step_have_none_found(noise: Noise) -> None:
    rng = np.random.default_rng(7)
    alarms = sum(bool(find_steps(noise(rng, RUNS))) for _ in range(SERIES))
    assert alarms <= 0.05 * SERIES


@pytest.mark.parametrize("noise", [normal, skewed, with_outliers])
def test_a_step_of_five_percent_is_found_where_it_is(noise: Noise) -> None:
    rng = np.random.default_rng(8)
    found = exact = 0
    for _ in range(SERIES):
        at = int(rng.integers(5, RUNS - 4))
        values = noise(rng, RUNS)
        values[at:] += STEP
        places = [s.at for s in find_steps(values)]
        found += any(abs(p - at) <= 1 for p in places)
        exact += at in places
    assert found >= 0.95 * SERIES and exact >= 0.85 * SERIES


@pytest.mark.nightly
def test_false_alarms_are_as_rare_as_is_said() -> None:
    rng = np.random.default_rng(9)
    alarms = np.mean([bool(find_steps(normal(rng, 20))) for _ in range(3000)])
    assert alarms <= ALPHA + 3 * np.sqrt(ALPHA / 3000)


def test_several_steps_in_both_directions() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([normal(rng, 20), normal(rng, 20) + 0.1, normal(rng, 20) + 0.04])
    assert [s.at for s in find_steps(values)] == [20, 40]
    assert find_steps(values) == find_steps(values.copy())
    assert all(0 < s.p_value <= ALPHA for s in find_steps(values))


def test_equal_values_and_single_outliers_are_no_steps() -> None:
    assert find_steps([1.0] * 50) == []
    for place in (0, 10, 18, 19):
        values = normal(np.random.default_rng(2), 20)
        values[place] += 1.0
        assert find_steps(values) == []


def test_a_step_without_noise_is_found() -> None:
    (step,) = find_steps([0.0] * 10 + [0.01] * 10)
    assert step.at == 10


def test_few_runs_cannot_have_a_step() -> None:
    # 20 and 35 pairs of sides: whatever they are, two orders in them are as far apart.
    assert not can_find(2 * MIN_SIDE - 1, 1.0) and not can_find(7, ALPHA) and can_find(9, ALPHA)
    assert find_steps([0.0] * 4 + [1.0] * 4) == [] and find_steps([]) == []
    assert [s.at for s in find_steps([0.0, 0.01, 0.0, 0.02, 0.0, 1.0, 1.01, 1.0, 1.0, 1.0])] == [5]


def test_more_series_need_more_certainty() -> None:
    values = [0.0] * 5 + [1.0] * 5
    assert find_steps(values, 0.025) and not find_steps(values, 0.025 / 100)
