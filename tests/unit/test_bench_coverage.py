"""Known truth: through the real stopping rule, the 95 % interval holds the true median in at least 93 % of 2,000 runs.

That many runs are for the night; 200 every time show that rule and interval are still these (91 %: 2.6 standard deviations). It is more than
95 % mostly: the tick, and correlation that chance makes, widen the interval. See ``test_bench_known_truth.py`` too."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from cuptiprof.stats.correlation import Array
from cuptiprof.stats.statistics import MedianInterval, median_interval
from cuptiprof.stats.stopping import Rule, default_rule

FEW, MANY = (200, 91), pytest.param((2000, 93), marks=pytest.mark.nightly)  # runs, least % that hold
CENTRE = 10_000.0  # ns
PHI = 0.3
Draw = Callable[[np.random.Generator, int], Array]


def normal(rng: np.random.Generator, n: int) -> Array:
    return CENTRE * (1 + 0.02 * rng.normal(size=n))


def log_normal(rng: np.random.Generator, n: int) -> Array:
    return CENTRE * np.exp(0.05 * rng.normal(size=n))


def bimodal(rng: np.random.Generator, n: int) -> Array:
    """70 % around 10 us, 30 % around 10.6 us."""
    return np.where(rng.random(n) < 0.3, 10_600.0, 10_000.0) + 100 * rng.normal(size=n)


def heavy_tailed(rng: np.random.Generator, n: int) -> Array:
    """Student's t with 1.5 degrees of freedom: the variance is infinite."""
    return CENTRE + 100 * rng.standard_t(1.5, size=n)


def timer_ticks(rng: np.random.Generator, n: int) -> Array:
    """A timer of 32 ns steps and noise of 100 ns: about a dozen values, most many times."""
    return 32 * np.rint(CENTRE * (1 + 0.01 * rng.normal(size=n)) / 32)


def correlated(rng: np.random.Generator, n: int, phi: float = PHI) -> Array:
    """AR(1): every sample remembers `phi` of the one before."""
    start = 60
    noise = rng.normal(size=n + start) * np.sqrt(1 - phi**2)
    return CENTRE * (1 + 0.02 * np.convolve(noise, phi ** np.arange(start))[start : start + n])


def true_median(draw: Draw) -> float:
    if draw is not bimodal:
        return CENTRE
    cdf, low, high = NormalDist().cdf, 9_000.0, 11_000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        share = 0.7 * cdf((middle - 10_000) / 100) + 0.3 * cdf((middle - 10_600) / 100)
        low, high = (middle, high) if share < 0.5 else (low, middle)
    return low


def harness_blocks(limit: int) -> list[int]:
    """Sizes at which samples reach the rule when they come in blocks that grow by half."""
    sizes = [10]
    while sizes[-1] < limit:
        sizes.append(min(limit, -(-sizes[-1] * 3 // 2)))
    return sizes


def measure(x: Array, rule: Rule, sizes: list[int]) -> MedianInterval:
    """What the harness does with times that come as `x` does: ask the rule, then give the interval of what it has."""
    for n in sizes:
        if rule(x[:n], 0.0) is not None:
            return median_interval(x[:n])
    raise AssertionError("the rule never stopped")


def coverage(draw: Draw, sizes: list[int], seed: int, runs: int) -> tuple[float, float]:
    """Share of runs, in %, whose interval holds the true median; mean number of samples."""
    rng, truth, rule = np.random.default_rng(seed), true_median(draw), default_rule(maximum=sizes[-1])
    found = [measure(draw(rng, sizes[-1]), rule, sizes) for _ in range(runs)]
    share = 100 * float(np.mean([i.low <= truth <= i.high for i in found]))
    return share, float(np.mean([i.samples for i in found]))


@pytest.mark.parametrize("size", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("draw", [normal, log_normal, bimodal, heavy_tailed, timer_ticks, correlated])
def test_default_rule_keeps_the_coverage(
    draw: Draw, size: tuple[int, int], record_property: Callable[[str, object], None]
) -> None:
    runs, least = size
    share, samples = coverage(draw, [100 * 2**k for k in range(6)], seed=2024, runs=runs)
    record_property("coverage", f"{draw.__name__} {share:.2f} % {samples:.0f} samples")
    assert share >= least, f"{share:.2f} % of {runs} runs, {samples:.0f} samples in the mean"


@pytest.mark.parametrize("size", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("draw", [normal, bimodal, correlated])
def test_coverage_in_blocks_of_the_harness(
    draw: Draw, size: tuple[int, int], record_property: Callable[[str, object], None]
) -> None:
    runs, least = size
    share, samples = coverage(draw, harness_blocks(3000), seed=2025, runs=runs)
    record_property("coverage", f"{draw.__name__} in blocks {share:.2f} % {samples:.0f} samples")
    assert share >= least, f"{share:.2f} % of {runs} runs, {samples:.0f} samples in the mean"


def after_every_sample(draw: Draw, runs: int, seed: int) -> float:
    """Share of runs, in %, that hold the true median when the same width is looked for after every sample from the 10th."""
    rng, truth, held = np.random.default_rng(seed), true_median(draw), 0
    for _ in range(runs):
        x = draw(rng, 2000)
        found = (median_interval(x[:n], independent=True) for n in range(10, 2000))
        interval = next(i for i in found if i.half_width <= 0.005)
        held += interval.low <= truth <= interval.high
    return 100 * held / runs


@pytest.mark.parametrize("draw", [timer_ticks, correlated])
def test_looking_after_every_sample_does_not(draw: Draw) -> None:
    """Why the rule looks at few sizes and allows for correlation."""
    assert after_every_sample(draw, 500, seed=2026) < 94


@pytest.mark.parametrize(("phi", "naive_below"), [(0.3, 91), (0.6, 80)])
def test_correlation_must_be_allowed_for(phi: float, naive_below: float) -> None:
    """At a fixed 200 samples: intervals of independent samples hold the median too seldom, ours do not."""
    rng, ours, naive = np.random.default_rng(2027), 0, 0
    for _ in range(1000):
        x = correlated(rng, 200, phi)
        for independent in (False, True):
            interval = median_interval(x, independent=independent)
            held = interval.low <= CENTRE <= interval.high
            ours, naive = ours + (held and not independent), naive + (held and independent)
    assert naive / 10 < naive_below and 93 <= ours / 10 <= 99, f"ours {ours / 10:.1f} %, naive {naive / 10:.1f} %"


@pytest.mark.parametrize("n", [6, 8, 11, 15, 30])
def test_small_samples_are_near_nominal(n: int) -> None:
    """Interpolation between order statistics: 95 % where whole ranks give up to 98 % (independent samples)."""
    x = np.random.default_rng(1).normal(size=(8000, n))
    intervals = [median_interval(row, independent=True, tick=0.0) for row in x]
    share = 100 * float(np.mean([i.low <= 0 <= i.high for i in intervals]))
    assert 94 <= share <= 96.2, f"{share:.2f} %"


def test_coarse_timer_still_holds_the_real_median() -> None:
    """Noise below the timer's step: with the step known, the interval holds the real median, not only a tick."""
    rng, held = np.random.default_rng(2028), 0
    for _ in range(500):
        interval = median_interval(32 * np.rint((1010 + 10 * rng.normal(size=200)) / 32), tick=32.0)
        held += interval.low <= 1010 <= interval.high
    assert held / 500 >= 0.95
