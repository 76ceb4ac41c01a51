"""What fails a build: simulated sweeps through the gate, with all that is measured again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from bench_rows import ENVIRONMENT, failed, row

from cuptiprof.bench.results.gate import Decision, decide_gate
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results, pool

POINTS, PROCESSES, OFFSET, LIMIT = 100, 20, 0.02, 0.01


def process(rng: np.random.Generator, keys: Sequence[int], times: Mapping[int, float]) -> Results:
    """Points in one process: each is off by OFFSET (one sigma), its samples by 1 %."""
    rows = [
        row(10_000 * times.get(i, 1.0) * float(np.exp(OFFSET * rng.normal())), params={"n": i}, n=20, seed=int(rng.integers(1 << 30)))
        for i in keys
    ]  # fmt: skip
    return Results(tuple(rows), ENVIRONMENT)


def side(rng: np.random.Generator, count: int, keys: Sequence[int], times: Mapping[int, float]) -> Results:
    return pool([process(rng, keys, times) for _ in range(count)])


def again(
    rng: np.random.Generator, count: int, times: Mapping[int, float], asked: list[int]
) -> Callable[[Sequence[Row]], Sequence[Results]]:
    """As ``cuptiprof bench`` does it: as many new processes; of one two, each for itself."""

    def measure(rows: Sequence[Row]) -> Sequence[Results]:
        keys = [int(r.params["n"]) for r in rows if isinstance(r.params["n"], int)]
        asked.extend(keys)
        return [process(rng, keys, times) for _ in range(2)] if count == 1 else [side(rng, count, keys, times)]

    return measure


def numbers(points: Sequence[object]) -> list[object]:
    return [p.new.params["n"] for p in points]  # type: ignore[attr-defined]


@pytest.mark.parametrize("sweeps", [2, pytest.param(50, marks=pytest.mark.nightly)])
def test_no_unchanged_sweep_fails_and_a_slow_point_is_found(sweeps: int) -> None:
    """100 points in 20 processes a side, each off by 2 %: no sweep fails; one point slower by 5 % does, in 95 % at least."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(sweeps):
        base = side(rng, PROCESSES, range(POINTS), {})
        same = decide_gate(base, side(rng, PROCESSES, range(POINTS), {}), LIMIT, again(rng, PROCESSES, {}, []))
        assert not same.failing
        slow = {7: 1.05}
        asked: list[int] = []
        new = side(rng, PROCESSES, range(POINTS), slow)
        decision = decide_gate(base, new, LIMIT, again(rng, PROCESSES, slow, asked))
        assert set(numbers(decision.failing)) <= {7} and len(asked) <= 2
        found += numbers(decision.failing) == [7]
    assert found >= 0.95 * sweeps


def test_of_single_processes_fewer_unchanged_points_fail() -> None:
    """Samples of one process do not know how far apart processes are: 16 % of the points fail at first, a fifth of them again."""
    rng, first, last = np.random.default_rng(2), 0, 0
    for _ in range(3):
        base, new = (process(rng, range(POINTS), {}) for _ in range(2))
        decision = decide_gate(base, new, LIMIT, again(rng, 1, {}, []))
        first, last = first + len(decision.comparison.failing(LIMIT)), last + len(decision.failing)
        assert len(decision.passing) == len(decision.comparison.failing(LIMIT)) - len(decision.failing)
    assert first >= 25 and last <= 0.4 * first


def test_the_second_verdict_is_of_new_samples_alone() -> None:
    """Something ran beside the first measurement: pooled with it, what was measured again would be slower still."""
    rng, keys = np.random.default_rng(3), range(10)
    base = side(rng, PROCESSES, keys, {})
    disturbed = side(rng, PROCESSES, keys, {4: 1.15})
    once_more = side(rng, PROCESSES, [4], {})
    decision = decide_gate(base, disturbed, LIMIT, lambda rows: [once_more])
    assert not decision.failing and numbers(decision.passing) == [4]
    assert decision.lines(LIMIT)[0].startswith("not slower when measured again: gemm n=4: ")
    pooled = pool([disturbed, once_more])
    assert numbers(decide_gate(base, pooled, LIMIT, None).failing) == [4]


def steady(times: Mapping[int, float]) -> Results:
    return Results(tuple(row(1000 * t, params={"n": n}, seed=n) for n, t in times.items()), ENVIRONMENT)


def decide(base: Results, new: Results, *turns: Results) -> Decision:
    return decide_gate(base, new, 0.05, lambda rows: turns)


def test_a_point_fails_only_if_it_is_slower_in_each_turn() -> None:
    base, new = steady({1: 1, 2: 1, 3: 1}), steady({1: 1.2, 2: 1.2, 3: 1})
    for first, second in itertools.product((1.0, 1.2), repeat=2):
        decision = decide(base, new, steady({1: first, 2: 1.2}), steady({2: 1.2, 1: second}))
        assert numbers(decision.failing) == ([1, 2] if first == second == 1.2 else [2])
        assert numbers(decision.passing) == ([] if first == second == 1.2 else [1])
    # The verdict that is shown is the one that decided.
    found = decide(base, new, steady({1: 1.2, 2: 1.3}), steady({1: 1.2, 2: 1.4})).failing
    assert [p.verdict and round(p.verdict.ratio, 1) for p in found] == [1.2, 1.4]


def test_what_cannot_be_measured_again_fails() -> None:
    base, new = steady({1: 1, 2: 1}), steady({1: 1.2, 2: 1.2})
    turn = Results((failed(params={"n": 1}), *steady({2: 1.0}).rows), ENVIRONMENT)
    decision = decide(base, new, turn)
    assert numbers(decision.failing) == [1] and numbers(decision.passing) == [2]
    assert decision.lines(0.05)[0] == "slower by 5% or more: gemm n=1: it failed now"
    assert numbers(decide_gate(base, new, 0.05, None).failing) == [1, 2]  # of stored results


def test_what_is_fast_enough_is_not_measured_again() -> None:
    def never(rows: Sequence[Row]) -> Sequence[Results]:
        raise AssertionError

    assert not decide_gate(steady({1: 1}), steady({1: 1.02}), 0.05, never).failing
    asked: list[object] = []

    def note(rows: Sequence[Row]) -> Sequence[Results]:
        asked.extend(r.params["n"] for r in rows)
        return [steady({2: 1.2})]

    decide_gate(steady({1: 1, 2: 1}), steady({1: 1.02, 2: 1.2}), 0.05, note)
    assert asked == [2]
