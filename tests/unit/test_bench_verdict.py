"""Verdicts of the benchmark harness: no claim on noise, a real slow-down found, and drift cancelled in rounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
import pytest

from cuptiprof.stats.correlation import Array
from cuptiprof.stats.stopping import default_rule
from cuptiprof.stats.verdict import Kind, Verdict, judge, judge_pairs, log_contrasts

# Runs, and the share of wrong verdicts: 5 % of the thousand runs of the night; 200, every time, may be three standard
# deviations off.
SIZE = pytest.mark.parametrize(("runs", "wrong"), [(200, 0.1), pytest.param(1000, 0.05, marks=pytest.mark.nightly)])
Order = Literal["ABBA", "ABAB"]


def plausible(rng: np.random.Generator, n: int, phi: float = 0.0) -> Array:
    """10 us with log-normal noise of 2 % (AR(1) if `phi`) and one sample in a hundred slow by half in the mean."""
    noise = rng.normal(size=n + 60) * math.sqrt(1 - phi**2)
    noise = np.convolve(noise, phi ** np.arange(60))[60 : n + 60] if phi else noise[:n]
    slow = np.where(rng.random(n) < 0.01, 1 + rng.exponential(0.5, n), 1.0)
    return 10_000 * np.exp(0.02 * noise) * slow


def ticked(rng: np.random.Generator, n: int) -> Array:
    return 32 * np.rint(plausible(rng, n) / 32)


def bimodal(rng: np.random.Generator, n: int) -> Array:
    return np.where(rng.random(n) < 0.3, 10_600.0, 10_000.0) + 100 * rng.normal(size=n)


def correlated(rng: np.random.Generator, n: int) -> Array:
    return plausible(rng, n, phi=0.3)


@lru_cache(maxsize=1)
def default_budget() -> int:
    """Samples at which the default rule stops most often with this noise."""
    rng, rule = np.random.default_rng(1), default_rule()
    stops = []
    for _ in range(100):
        x = plausible(rng, 1600)
        stops.append(next(n for n in (100, 200, 400, 800, 1600) if rule(x[:n], 0.0)))
    return Counter(stops).most_common(1)[0][0]


def in_turns(stream: Array, order: str) -> tuple[Array, Array]:
    """One stream of samples, (2 n,) with n even, as two series taken in turns, (n,) each."""
    n = len(stream) // 2
    which = np.array({"AABB": [0] * n + [1] * n, "ABBA": [0, 1, 1, 0] * (n // 2), "ABAB": [0, 1] * n}[order])
    return stream[which == 0], stream[which == 1]


def rates(judged: Callable[[], Verdict], runs: int) -> dict[Kind, float]:
    counts = Counter(judged().kind for _ in range(runs))
    return {kind: counts[kind] / runs for kind in Kind}


@SIZE
@pytest.mark.parametrize("draw", [plausible, ticked, bimodal, correlated])
@pytest.mark.parametrize("n", [8, 20, None])
def test_equal_code_is_not_called_different(draw: Callable[..., Array], n: int | None, runs: int, wrong: float) -> None:
    rng, n = np.random.default_rng(2), n or default_budget()
    alone = rates(lambda: judge(draw(rng, n), draw(rng, n)), runs)
    assert alone[Kind.FASTER] + alone[Kind.SLOWER] <= wrong, alone
    turns = rates(lambda: judge_pairs(*in_turns(draw(rng, 2 * n), "ABBA")), runs)
    assert turns[Kind.FASTER] + turns[Kind.SLOWER] <= wrong, turns


@SIZE
@pytest.mark.parametrize("draw", [plausible, ticked, correlated])
def test_three_percent_is_found_at_the_default_budget(draw: Callable[..., Array], runs: int, wrong: float) -> None:
    rng, n = np.random.default_rng(3), default_budget()
    assert n in (400, 800)
    slower = rates(lambda: judge(draw(rng, n), 1.03 * draw(rng, n)), runs)
    assert slower[Kind.SLOWER] >= 1 - wrong, slower
    faster = rates(lambda: judge(1.03 * draw(rng, n), draw(rng, n)), runs)
    assert faster[Kind.FASTER] >= 1 - wrong, faster
    turns = rates(lambda: judge_pairs(draw(rng, n), 1.03 * draw(rng, n)), runs)
    assert turns[Kind.SLOWER] >= 1 - wrong, turns


def test_same_needs_evidence() -> None:
    rng = np.random.default_rng(4)
    many = rates(lambda: judge(plausible(rng, 800), plausible(rng, 800)), 200)
    few = rates(lambda: judge(plausible(rng, 20), plausible(rng, 20)), 200)
    assert many[Kind.SAME] >= 0.95 and few[Kind.UNSURE] >= 0.9
    # A margin beyond what is measured makes even few samples the same; none at all is never met by noise.
    assert judge(plausible(rng, 100), plausible(rng, 100), threshold=0.05).kind is Kind.SAME
    assert judge(plausible(rng, 800), plausible(rng, 800), threshold=0.0).kind is not Kind.SAME
    # A real difference just beyond the margin is called the same seldom, never more than alpha / 2 by design.
    beyond = rates(lambda: judge(plausible(rng, 400), 1.01 * plausible(rng, 400)), 500)
    assert beyond[Kind.SAME] <= 0.05


def test_small_but_certain_differences_are_within_the_margin() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(100, 0.1, 400), rng.normal(100.4, 0.1, 400)
    verdict = judge(x, y)
    assert verdict.kind is Kind.SAME and verdict.low > 1 and verdict.p_value < 1e-9
    assert judge(x, y, threshold=0.001).kind is Kind.SLOWER
    assert judge(y, x, threshold=0.001).kind is Kind.FASTER


def drifting(rng: np.random.Generator, n: int, order: str) -> tuple[Array, Array]:
    """Two series of the same code, n each, while the clock falls by 6 % over both."""
    return in_turns(10_000 * (1 + np.linspace(0, 0.06, 2 * n)) * np.exp(0.01 * rng.normal(size=2 * n)), order)


def test_a_drift_leaves_one_after_the_other_unsure_but_not_turns() -> None:
    rng, n = np.random.default_rng(6), 200
    apart = rates(lambda: judge(*drifting(rng, n, "AABB")), 300)
    assert apart[Kind.UNSURE] >= 0.95, apart  # samples that rise all the time have no median to compare
    for order in ("ABBA", "ABAB"):
        turns = rates(lambda o=order: judge_pairs(*drifting(rng, n, o), order=o), 300)  # type: ignore[misc]
        assert turns[Kind.SLOWER] + turns[Kind.FASTER] <= 0.05 and turns[Kind.SAME] >= 0.9, turns
    base, new = drifting(rng, n, "ABBA")
    assert judge_pairs(base, 1.03 * new).kind is Kind.SLOWER


@pytest.mark.parametrize("order", ["ABBA", "ABAB"])
def test_contrasts_cancel_a_linear_drift_exactly(order: Order) -> None:
    base, new = in_turns(np.exp(0.001 * np.arange(48)), order)
    contrasts = log_contrasts(base, 1.02 * new, order)
    assert contrasts == pytest.approx(np.full(12, math.log(1.02)), abs=1e-12)
    verdict = judge_pairs(base, 1.02 * new, order=order)
    assert verdict.kind is Kind.SLOWER and verdict.ratio == pytest.approx(1.02) and verdict.effect == 1


def test_what_a_verdict_holds() -> None:
    base, new = [100.0, 101, 99, 100, 102, 98, 100, 101], [110.0, 111, 109, 110, 112, 108, 110, 111]
    verdict = judge(base, new)
    assert verdict.kind is Kind.SLOWER and verdict.differs and verdict.kind == "SLOWER"
    assert verdict.ratio == pytest.approx(1.1) and 1 < verdict.low < 1.1 < verdict.high
    assert verdict.effect == 1 and verdict.p_value == pytest.approx(2 / math.comb(16, 8))
    assert str(verdict).startswith("SLOWER: +10.00 % (+") and "p 0.00016" in str(verdict)
    same = judge([5.0] * 50, [5.0] * 50, tick=0.0)
    assert same.kind is Kind.SAME and (same.ratio, same.low, same.high, same.p_value) == (1, 1, 1, 1)


def test_a_tick_is_no_difference() -> None:
    """2.030 and 2.034 us on a clock of 32 ns: every reading of the one is a tick above every one of the other."""
    base, new = [2016.0] * 400, [2048.0] * 400
    for both in (judge, judge_pairs):
        for tick in (None, 32.0, (32.0, 32.0)):
            assert not both(base, new, tick=tick).differs  # type: ignore[operator]
        assert both(base, new, tick=1.0).kind is Kind.SLOWER  # type: ignore[operator]
        assert both(base, [2112.0] * 400, tick=32.0).kind is Kind.SLOWER  # type: ignore[operator]
        unknown = both([5.0] * 50, [5.0] * 50)  # type: ignore[operator]
        assert unknown.kind is Kind.UNSURE and "tick of their clock" in unknown.reason


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_too_few_samples_are_unsure(n: int) -> None:
    for verdict in (judge([1.0] * n, [2.0] * n), judge_pairs([1.0] * n, [2.0] * n)):
        assert verdict.kind is Kind.UNSURE and "too few" in verdict.reason
        assert (verdict.low, verdict.high, verdict.ratio) == (0, math.inf, 2)


def test_medians_that_differ_where_ranks_do_not() -> None:
    """Half of both series lies low and half high; one sample moves the median. That is no claim."""
    base, new = [100.0, 200.0] * 50 + [100.0], [100.0, 200.0] * 50 + [200.0]
    verdict = judge(base, new)
    assert verdict.ratio > 1.5 and verdict.kind is Kind.UNSURE


def test_bad_series_are_refused() -> None:
    good = [1.0, 2, 3, 4, 5, 6, 7, 8]
    for call in (judge, judge_pairs):
        for bad in ([], [0.0] * 8, [-1.0] * 8, [math.nan] * 8):
            with pytest.raises(ValueError):
                call(good, bad)  # type: ignore[operator]
        for options in ({"threshold": -0.1}, {"threshold": math.nan}, {"alpha": 0.0}, {"alpha": 1.0}):
            with pytest.raises(ValueError, match="threshold"):
                call(good, good, **options)  # type: ignore[operator]
    with pytest.raises(ValueError, match="as many"):
        judge_pairs(good, good[:-1])
    with pytest.raises(ValueError, match="ABBA or ABAB"):
        judge_pairs(good, good, order="BAAB")  # type: ignore[arg-type]


@SIZE
def test_a_difference_inside_the_margin_is_not_claimed(runs: int, wrong: float) -> None:
    """A true 0.8 % is less than what matters: however many samples show it, it is no claim; at the margin's edge seldom one."""
    rng = np.random.default_rng(7)
    for n, change in ((200, 1.008), (800, 1.008), (800, 1.01)):
        found = rates(lambda n=n, c=change: judge(plausible(rng, n), c * plausible(rng, n)), runs)  # type: ignore[misc]
        assert found[Kind.SLOWER] + found[Kind.FASTER] <= wrong, (n, change, found)
        turns = rates(lambda n=n, c=change: judge_pairs(plausible(rng, n), c * plausible(rng, n)), runs)  # type: ignore[misc]
        assert turns[Kind.SLOWER] + turns[Kind.FASTER] <= wrong, (n, change, turns)


def test_between_the_margin_and_a_claim() -> None:
    rng = np.random.default_rng(8)
    base = rng.normal(100, 0.5, 200)
    small = judge(base, 1.009 * rng.normal(100, 0.5, 200))
    assert small.kind is Kind.SMALL and 1 < small.low < 1.01 < small.high and not small.differs
    assert "differs, but not for certain by more than the margin of 1 %" in small.reason
    within = judge(base, rng.normal(100.4, 0.1, 200))
    assert within.kind is Kind.SAME and "differs, below the margin of 1 %" in within.reason
    assert judge(base, 1.009 * base, threshold=0.0).kind is Kind.SLOWER  # no margin: any difference that is certain
    faster = judge(1.02 * base, base)
    assert faster.kind is Kind.FASTER and faster.high < 1 / 1.01
