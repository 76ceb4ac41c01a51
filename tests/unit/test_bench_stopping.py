"""Stopping rules of the benchmark harness: when they stop, when not, and what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cuptiprof.stats.statistics import median_interval
from cuptiprof.stats.stopping import Count, RelativeHalfWidth, Rule, Stop, TimeLimit, default_rule


def stops_at(rule: Rule, samples: np.ndarray, sizes: range | list[int]) -> tuple[int, Stop] | None:
    return next(((n, stop) for n in sizes if (stop := rule(samples[:n], 0.0))), None)


def test_half_width_is_looked_at_few_times_only() -> None:
    rng = np.random.default_rng(1)
    x = rng.lognormal(9, 0.08, 4000)
    rule = RelativeHalfWidth(0.005)
    found = stops_at(rule, x, range(1, 4000))
    assert found is not None
    n, stop = found
    assert n in (800, 1600, 3200) and stop.converged
    assert median_interval(x[:n]).half_width <= 0.005 < median_interval(x[: n // 2]).half_width
    assert f"after {n} samples" in stop.reason and "target 0.5 %" in stop.reason
    # In between it judges the same samples, whatever blocks they come in.
    assert rule(x[: n + 57], 0.0) == stop
    assert [rule.size_at(k) for k in (0, 399, 400, 799, 800, 4000)] == [0, 0, 400, 400, 800, 3200]
    assert [RelativeHalfWidth(minimum=10, growth=1.5).size_at(k) for k in (9, 10, 15, 24, 35)] == [0, 10, 15, 23, 35]


def test_half_width_waits_for_the_confidence() -> None:
    rule = RelativeHalfWidth(10.0, minimum=2, growth=1.01)
    found = stops_at(rule, np.array([5.0, 6, 5.1, 6.1, 5.2, 6.2, 5.3, 6.3]), range(1, 9))
    assert found is not None and found[0] == 6  # 5 samples give 93.75 % at most


def test_constant_series_stops_at_the_minimum_and_says_what_is_known() -> None:
    outlier = np.full(1000, 10.15)
    outlier[7] = 11.4
    for x in (np.full(1000, 10.15), outlier):
        found = stops_at(default_rule(), x, range(1, 1000))
        assert found is not None and found[0] == 400 and not found[1].converged and "tick" in found[1].reason
        known = default_rule()(x[:400], 0.0, 0.01)
        assert known is not None and known.converged
        coarse = default_rule()(x[:400], 0.0, 1.0)
        assert coarse is not None and not coarse.converged and "to a tick of the clock, 4.9 %" in coarse.reason


def test_correlated_samples_are_waited_for() -> None:
    """Narrow enough is not enough while the correlation is not known well: 200 correlation times."""
    rng = np.random.default_rng(5)
    x = 100 + np.convolve(rng.normal(size=12_900), 0.9 ** np.arange(100), "valid") * 0.05
    assert median_interval(x[:400]).half_width <= 0.005 and not median_interval(x[:400]).settled
    found = stops_at(default_rule(), x, [400, 800, 1600, 3200, 6400, 12_800])
    assert found is not None and found[0] >= 3200


def test_noise_that_never_settles_is_stopped_by_the_limits() -> None:
    x = np.random.default_rng(2).lognormal(9, 2.0, 13_000)
    n, stop = stops_at(default_rule(maximum=3000), x, [100, 200, 400, 2999, 3000]) or (0, None)
    assert n == 3000 and stop is not None and not stop.converged and "limit 3000" in stop.reason
    late = default_rule(seconds=2.0)(x[:5], 2.5)
    assert late is not None and not late.converged and late.reason == "2.5 s (limit 2 s) with 5 samples"
    assert default_rule(seconds=2.0)(x[:5], 1.9) is None


def test_any_and_all() -> None:
    x = 100 + np.arange(500) * 0.618034 % 1
    either, both = Count(300) | TimeLimit(1.0), Count(300) & TimeLimit(1.0)
    assert either(x[:10], 0.5) is None and both(x[:10], 0.5) is None
    assert either(x[:10], 1.5) is not None and both(x[:10], 1.5) is None
    stop = both(x[:300], 1.5)
    assert stop == Stop("300 samples (limit 300); 1.5 s (limit 1 s) with 300 samples", False)
    narrow = RelativeHalfWidth(0.01, minimum=100)
    assert (narrow & Count(300))(x[:299], 0.0) is None
    together = (narrow & Count(300) | TimeLimit(9.0))(x[:300], 0.0)
    assert together is not None and together.converged
    assert (Count(5) | Count(3))(x[:4], 0.0) == Stop("4 samples (limit 3)", False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Count(0),
        lambda: TimeLimit(0.0),
        lambda: TimeLimit(math.nan),
        lambda: RelativeHalfWidth(0.0),
        lambda: RelativeHalfWidth(math.nan),
        lambda: RelativeHalfWidth(confidence=1.0),
        lambda: RelativeHalfWidth(minimum=1),
        lambda: RelativeHalfWidth(growth=1.0),
        lambda: RelativeHalfWidth(growth=math.inf),
    ],
)
def test_senseless_rules_are_refused(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]


def test_no_samples_and_broken_samples() -> None:
    assert default_rule()(np.empty(0), 0.0) is None
    with pytest.raises(ValueError, match="finite"):
        default_rule()(np.full(400, math.nan), 0.0)


def test_rules_say_how_many_samples_they_wait_for() -> None:
    assert [default_rule().next_look(n) for n in (0, 399, 400, 500, 6400, 12_800)] == [
        400,
        400,
        800,
        800,
        12_800,
        25_600,
    ]
    assert Count(24).next_look(10) == 24 and Count(24).next_look(24) == math.inf
    assert TimeLimit(1.0).next_look(5) == math.inf
    both = RelativeHalfWidth(minimum=10, growth=1.5) & (Count(12) | TimeLimit(1.0))
    assert [both.next_look(n) for n in (0, 10, 12, 15)] == [10, 12, 15, 23]
