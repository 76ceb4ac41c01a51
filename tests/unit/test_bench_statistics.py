"""Statistics of the benchmark harness against numbers worked out by hand, from tables, or by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from cuptiprof.stats.correlation import autocorrelation, correlation_time, effective_samples, midranks, trend
from cuptiprof.stats.noise import describe_noise, fences, modes
from cuptiprof.stats.ranks import mann_whitney, pseudo_median, wilcoxon
from cuptiprof.stats.statistics import (
    mad,
    median_interval,
    quantiles,
    ratio_of_medians,
    sign_rank,
)
from cuptiprof.stats.ticks import spread_ties, timer_tick


def sign_coverage(n: int, k: int) -> float:
    """1 - 2 P(Binomial(n, 1/2) < k), in whole numbers."""
    return 1 - 2 * sum(math.comb(n, j) for j in range(k)) / 2**n


@pytest.mark.parametrize("n", [6, 7, 10, 15, 20, 99, 100, 1001])
def test_sign_rank_lies_between_the_exact_intervals(n: int) -> None:
    rank, confidence = sign_rank(n, 0.95)
    k = int(rank)
    assert confidence == 0.95
    assert sign_coverage(n, k) >= 0.95 > sign_coverage(n, k + 1)
    share = (sign_coverage(n, k) - 0.95) / (sign_coverage(n, k) - sign_coverage(n, k + 1))
    assert rank == pytest.approx(k + (n - k) * share / (k + (n - 2 * k) * share), abs=1e-9)


def test_sign_rank_of_a_million() -> None:
    rank, _ = sign_rank(1_000_000, 0.95)
    assert rank == pytest.approx(500_000.5 - 1.959964 * 500, abs=1.0)


@pytest.mark.parametrize(("n", "confidence"), [(1, 0.0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)])
def test_few_samples_give_the_range_and_say_what_it_is_worth(n: int, confidence: float) -> None:
    values = [3.0, 9.0, 4.0, 7.0, 5.0][:n]
    interval = median_interval(values)
    assert (interval.low, interval.high, interval.confidence) == (min(values), max(values), confidence)
    assert interval.median == np.median(values)


def test_median_interval_of_ten() -> None:
    # Between the 2nd (97.85 %) and the 3rd value (89.06 %): weight 8 s / (2 + 6 s), s = (.978516-.95)/(.978516-.890625).
    interval = median_interval([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], independent=True)
    share = (0.978515625 - 0.95) / (0.978515625 - 0.890625)
    weight = 8 * share / (2 + 6 * share)
    assert interval.low == pytest.approx(2 + weight) and interval.high == pytest.approx(9 - weight)
    assert interval.median == 5.5 and interval.samples == 10 and interval.effective == 10
    assert interval.half_width == pytest.approx((7 - 2 * weight) / 2 / 5.5)


def test_correlated_samples_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(100, 1, 100), 5)  # every value five times in a row: 100 samples, not 500
    interval, naive = median_interval(x), median_interval(x, independent=True)
    assert 40 < interval.effective < 200 and naive.effective == 500
    assert 1.5 < (interval.high - interval.low) / (naive.high - naive.low) < 3.5


def test_ticks_are_found_only_with_evidence() -> None:
    rng = np.random.default_rng(2)
    ticked = 32 * np.rint(rng.normal(10_000, 100, 300) / 32)
    assert timer_tick(ticked) == 32 and timer_tick(ticked / 10) == pytest.approx(3.2)
    assert timer_tick(rng.normal(10_000, 100, 300)) == 0
    # Many are equal, and nothing says how far apart the next value would be: there is a tick, of whatever size.
    assert math.isnan(timer_tick([5.0, 5.0, 5.0])) and timer_tick([5.0]) == 0
    assert math.isnan(timer_tick([10.15] * 88_000 + [11.4]))
    # Two values that come again are enough then. It may be less than what they show, never more.
    assert timer_tick([2016.0] * 90 + [2048.0] * 10) == 32 and timer_tick([0.0] * 50 + [64.0] * 3 + [160.0] * 2) == 32
    assert math.isnan(timer_tick([2016.0] * 90 + [2048.0] * 10 + [2050.5]))
    assert (
        timer_tick([1, 1, 2, 2, 3, 3, 4, 4, math.e * 2, math.e * 2, math.pi * 2, math.pi * 2]) == 0
    )  # steps that are no multiples


def test_no_interval_is_narrower_than_its_clock_allows() -> None:
    """2.010 and 2.030 us read 2.016 us on a clock of 32 ns."""
    constant = [2016.0] * 400
    assert median_interval(constant).confidence == 0 and math.isnan(median_interval(constant).tick)
    known = median_interval(constant, tick=32.0)
    assert (known.median, known.low, known.high, known.confidence) == (2016, 2000, 2032, 0.95) and known.coarse
    # Readings that are rounded to ns are on the steps all the same.
    rounded = median_interval([2016.0, 2015.0, 2016.0, 2048.0, 2017.0] * 80, tick=32.0)
    assert (rounded.tick, rounded.low, rounded.high) == (32, 2000, 2032)
    # A clock that shows more than is said of it is taken at its readings.
    fine = np.random.default_rng(12).normal(2016, 2, 400)
    assert median_interval(fine, tick=500.0) == median_interval(fine) and not median_interval(fine).coarse


def test_few_correlated_samples_have_no_interval() -> None:
    rng = np.random.default_rng(13)
    walk = 100 + np.cumsum(rng.normal(size=200))
    assert median_interval(walk).confidence == 0 and median_interval(rng.normal(size=20)).confidence == 0.95


def test_ties_are_spread_over_their_tick() -> None:
    assert spread_ties(np.array([0.0, 10, 10, 20]), 10).tolist() == [0, 7.5, 12.5, 20]
    # 400 of 1000 lie below the tick from 5 to 15, which holds 300: the 500th is a third into it.
    x = np.repeat([0.0, 10, 20, 30, 40], [400, 300, 200, 60, 40])
    assert median_interval(x, tick=10.0, independent=True).median == pytest.approx(5 + 10 * 100 / 300)
    # One tick holds nearly all: nothing is known below it, so the interval is the whole tick.
    coarse = median_interval([992.0] * 90 + [1024.0] * 10, tick=32, independent=True)
    assert (coarse.low, coarse.high) == (976.0, 1008.0)


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf], [[1.0, 2.0]]])
def test_bad_samples_are_refused(bad: list[float]) -> None:
    for function in (median_interval, mad, correlation_time, timer_tick, wilcoxon, pseudo_median, describe_noise):
        with pytest.raises(ValueError, match=r"samples"):
            function(bad)  # type: ignore[operator]


def test_bad_arguments_are_refused() -> None:
    for confidence in (0.0, 1.0, -1, math.nan):
        for call in (median_interval, pseudo_median):
            with pytest.raises(ValueError, match="confidence"):
                call([1.0, 2.0], confidence)  # type: ignore[operator]
    for tick in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="tick"):
            median_interval([1.0, 2.0], tick=tick)
    with pytest.raises(ValueError, match="positive"):
        ratio_of_medians([1.0], [0.0])


def test_spread_and_quantiles() -> None:
    assert mad([1, 2, 3, 4, 100], scaled=False) == 1.0
    assert mad([1, 2, 3, 4, 100]) == pytest.approx(1.482602)
    # Definition 8: at p the place is (n + 1/3) p + 1/3.
    assert quantiles(range(1, 11), (0.5, 0.25)) == pytest.approx([5.5, 31 / 3 * 0.25 + 1 / 3])


def test_ratio_of_medians() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(0, 0.02, 400), rng.lognormal(0, 0.02, 400)
    ratio = ratio_of_medians(1.1 * a, b)
    assert ratio.low < ratio.value < ratio.high and ratio.value == pytest.approx(1.1, rel=0.005)
    # Both medians have a standard error of 1.2533 * 0.02 / 20.
    assert math.log(ratio.high / ratio.low) == pytest.approx(2 * 1.96 * math.sqrt(2) * 1.2533 * 0.02 / 20, rel=0.3)
    back = ratio_of_medians(b, 1.1 * a)
    assert back.low == pytest.approx(1 / ratio.high) and back.high == pytest.approx(1 / ratio.low)
    assert ratio_of_medians([2.0] * 9, [1.0] * 9).low == 2.0


def brute_mann_whitney(x: list[float], y: list[float]) -> float:
    ranks = midranks(np.array(x + y))
    total = ranks[: len(x)].sum()
    sums = np.array([sum(c) for c in itertools.combinations(ranks.tolist(), len(x))])
    return float(min(1.0, 2 * min((sums <= total + 1e-9).mean(), (sums >= total - 1e-9).mean())))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2, 3, 4], [5.0, 6, 7, 8]),
        ([1.0, 4, 5, 9, 2], [3.0, 4, 4, 8]),
        ([1.0, 1, 1], [1.0, 2, 2, 2, 1]),
        ([7.0], [1.0, 2, 3]),
    ],
)
def test_mann_whitney_is_exact_when_small(x: list[float], y: list[float]) -> None:
    test = mann_whitney(x, y)
    pairs = [(a > b) + 0.5 * (a == b) for a in x for b in y]
    assert test.exact and test.statistic == sum(pairs)
    assert test.p_value == pytest.approx(brute_mann_whitney(x, y))
    assert test.effect == pytest.approx(np.mean([np.sign(a - b) for a in x for b in y]))


def test_mann_whitney_table_and_normal_approximation() -> None:
    # Tables (Hollander, Wolfe): 5 against 5 with U = 2: P = 4 / 252 in each tail.
    assert mann_whitney([1, 2, 3, 4, 7], [5.0, 6, 8, 9, 10]).p_value == pytest.approx(2 * 4 / 252)
    # 30 against 30 without overlap but for one pair: U = 1; var = 900 * 61 / 12, no ties.
    x, y = np.arange(30.0), np.arange(30.0) + 29.5
    order = np.random.default_rng(4)
    x, y = order.permutation(x), order.permutation(np.append(y[1:], 28.5))
    test = mann_whitney(x, y)
    z = (450 - test.statistic - 0.5) / math.sqrt(900 * 61 / 12 * test.tau)
    assert not test.exact and test.p_value == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert mann_whitney([5.0] * 50, [5.0] * 50).p_value == 1.0


def test_wilcoxon_against_all_signs() -> None:
    d = np.array([1.0, -2, 3, 4, 4, -1, 0])
    ranks = midranks(np.abs(d))[d != 0]
    positive = midranks(np.abs(d))[d > 0].sum()
    sums = np.array([sum(c) for k in range(len(ranks) + 1) for c in itertools.combinations(ranks.tolist(), k)])
    expected = 2 * min((sums <= positive + 1e-9).mean(), (sums >= positive - 1e-9).mean())
    test = wilcoxon(d)
    assert test.exact and test.statistic == positive and test.p_value == pytest.approx(min(1.0, expected))
    assert wilcoxon(np.arange(1.0, 6)).p_value == pytest.approx(2 / 2**5) and wilcoxon(np.arange(1.0, 6)).effect == 1
    assert wilcoxon([0.0] * 5).p_value == 1.0
    many = wilcoxon(np.random.default_rng(5).normal(0.5, 1, 200))
    assert not many.exact and many.p_value < 1e-6


def test_pseudo_median_against_all_walsh_averages() -> None:
    d = np.array([1.0, 2, 4, 8, 16, 3, 5])
    walsh = np.sort([(d[i] + d[j]) / 2 for i in range(7) for j in range(i, 7)])
    shift = pseudo_median(d)
    assert shift.value == pytest.approx(np.median(walsh))
    # floor(14 - 1.96 sqrt(7 * 8 * 15 / 24)) = 2.
    assert (shift.low, shift.high) == pytest.approx((walsh[1], walsh[-2]))
    assert pseudo_median([1.0, 2.0]).confidence == 0.0
    assert pseudo_median([1.0, 2.0, 4.0]).value == pytest.approx(2.25)


def test_autocorrelation_and_its_time() -> None:
    x = np.random.default_rng(7).normal(size=500)
    centred = x - x.mean()
    direct = [float(centred[k:] @ centred[: 500 - k]) / float(centred @ centred) for k in range(6)]
    assert autocorrelation(x, 5) == pytest.approx(direct)
    assert autocorrelation([3.3] * 9).tolist() == [1.0] + [0.0] * 8
    assert correlation_time([1.0, -1.0] * 50) == 1.0  # anticorrelation is no reason for narrower intervals
    assert correlation_time([1.0] * 4) == 1.0


def test_effective_samples_of_a_known_process() -> None:
    # Signs of AR(1): rho_k = (2 / pi) asin(phi^k).
    rng = np.random.default_rng(8)
    noise, phi = rng.normal(size=40_060), 0.6
    x = np.convolve(noise, phi ** np.arange(60))[60:40_060]
    tau = 1 + 2 * sum(2 / math.pi * math.asin(phi**k) for k in range(1, 60))
    assert 40_000 / effective_samples(x) == pytest.approx(tau, rel=0.1)


def test_modes_and_outliers() -> None:
    rng = np.random.default_rng(10)
    slow = rng.random(1000) < 0.3
    low, high = modes(np.where(slow, 10_600, 10_000) + 100 * rng.normal(size=1000))
    assert low.value == pytest.approx(10_000, rel=0.005) and high.value == pytest.approx(10_600, rel=0.005)
    assert low.share == pytest.approx(0.7, abs=0.05) and low.share + high.share == pytest.approx(1)
    two = describe_noise(np.repeat([1_000.0, 1_100.0], 50) + rng.normal(size=100))
    assert any("1.00us" in s and "1.10us" in s for s in two.sentences(lambda ns: f"{ns / 1e3:.2f}us"))
    wrong = sum(len(modes(rng.normal(100, 2, 200))) > 1 for _ in range(500))
    assert wrong <= 10, "two modes seen in normal noise"
    assert modes([5.0] * 10) == (modes([5.0])[0],)
    x = np.append(rng.normal(100, 1, 200), [200.0, 210.0, 20.0])
    noise = describe_noise(x)
    assert (noise.high_outliers, noise.low_outliers) == (2, 1) and len(noise.modes) == 1
    assert "3 of 203 samples far out: 2 slow, 1 fast" in noise.sentences()
    assert fences([5.0] * 9) == (5.0, 5.0)


def test_drift_is_seen_and_said() -> None:
    rng = np.random.default_rng(11)
    rising = rng.normal(100, 1, 200) + np.linspace(0, 5, 200)
    assert trend(rising).rho > 0.5 and trend(rising).p_value < 1e-6
    text = " ".join(describe_noise(rising).sentences())
    assert "samples rise over the run" in text and "correlated" in text
    quiet = [describe_noise(rng.normal(100, 1, 200)).sentences() for _ in range(100)]
    assert sum(bool(s) for s in quiet) <= 5
    assert trend(range(10)).rho == pytest.approx(1) and trend([1.0] * 10).p_value == 1
