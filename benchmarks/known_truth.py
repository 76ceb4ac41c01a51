"""Do intervals hold the truth, and are verdicts right? Simulated noise of a known median through the harness's own rule and tests.

    python -m benchmarks.known_truth [--runs 1000] [NOISE ...]

Prints a row a noise as it goes, in % of the runs: intervals claimed; of those, intervals that hold the true median; mean number of
samples; equal code called FASTER or SLOWER; a slow-down of 3 % found. Seeded: the same numbers each time. The table of
docs/benchmark-statistics.md. ``tests/unit/test_bench_known_truth.py`` runs a little of it every time.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from cuptiprof.stats.correlation import Array
from cuptiprof.stats.statistics import MedianInterval, median_interval
from cuptiprof.stats.stopping import default_rule
from cuptiprof.stats.verdict import Verdict, judge

CENTRE = 10_000.0  # ns
LIMIT = 12_800  # samples, of the default rule
Draw = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Noise:
    """A noise: n samples in ns, the step of their clock (0: none), and their true median.

    Attributes:
        known: the clock's step is known to the harness; else it is to be found in the samples.
        truth: NaN: the median of a long series; infinite: the level moves for good, and the truth is that at which the samples were
            taken in the mean.
    """

    draw: Draw
    step: float = 0.0
    known: bool = False
    truth: float = CENTRE

    @property
    def tick(self) -> float | None:
        return self.step if self.known else None

    def times(self, rng: np.random.Generator, n: int, slower: float = 1.0) -> Array:
        """As the clock shows them, of a function that is so many times slower."""
        x = slower * self.draw(rng, n)
        return self.step * np.rint(x / self.step) if self.step else x


def white(rng: np.random.Generator, n: int, sigma: float = 0.02, centre: float = CENTRE) -> Array:
    return centre * (1 + sigma * rng.normal(size=n))


def gamma(rng: np.random.Generator, n: int) -> Array:
    """Skewed: 9.8 us and gamma noise of shape 1.5, 3 % in all."""
    return 9_800 + 250 * rng.gamma(1.5, size=n)


def outliers(rng: np.random.Generator, n: int) -> Array:
    """One sample in a hundred takes twenty times as long."""
    return np.where(rng.random(n) < 0.01, 20.0, 1.0) * white(rng, n)


def autoregressive(rng: np.random.Generator, n: int, phi: float, sigma: float = 0.02, more: float = 0.0) -> Array:
    """AR(1) of `sigma` in all, and independent noise of `more`."""
    start = math.ceil(math.log(1e-4) / math.log(phi))
    noise = rng.normal(size=n + start) * math.sqrt(1 - phi**2)
    return CENTRE * (
        1 + sigma * np.convolve(noise, phi ** np.arange(start))[start : start + n] + more * rng.normal(size=n)
    )


def steps(rng: np.random.Generator, n: int) -> Array:
    """Two levels 1 % apart, each for a hundred samples in the mean, and noise of 1 %."""
    changes = np.cumsum(rng.random(n) < 0.01) + rng.integers(2)
    return CENTRE * (1 + np.where(changes % 2, 0.005, -0.005)) * (1 + 0.01 * rng.normal(size=n))


def drift(rng: np.random.Generator, n: int) -> Array:
    """Slower by 1 % each thousand samples: there is no true median, and no interval is right for long."""
    return white(rng, n, 0.01) * (1 + 0.01 * np.arange(n) / 1000)


NOISES: dict[str, Noise] = {
    "normal, 2 %": Noise(white),
    "gamma, skewed": Noise(gamma, truth=math.nan),
    "1 % outliers x 20": Noise(outliers, truth=math.nan),
    "ticks of 1 us at 10.3 us, noise 2 %": Noise(partial(white, centre=10_300.0), 1000.0, True, 10_300.0),
    "the same, tick not known": Noise(partial(white, centre=10_300.0), 1000.0, False, 10_300.0),
    "ticks of 32 ns at 2.01 us, noise 0.05 %": Noise(partial(white, centre=2_010.0, sigma=0.0005), 32.0, True, 2_010.0),
    "ticks of 32 ns at 2.03 us, noise 0.05 %": Noise(partial(white, centre=2_030.0, sigma=0.0005), 32.0, True, 2_030.0),
    "the same with 0.5 %, tick not known": Noise(partial(white, centre=2_030.0, sigma=0.005), 32.0, False, 2_030.0),
    "ticks of 32 ns at 2.01 us, noise 1 %": Noise(partial(white, centre=2_010.0, sigma=0.01), 32.0, True, 2_010.0),
    "steps of 1 %": Noise(steps),
    "drift, 1 % a thousand": Noise(drift, truth=math.inf),
    "AR(1), 0.3": Noise(partial(autoregressive, phi=0.3)),
    "AR(1), 0.6": Noise(partial(autoregressive, phi=0.6)),
    "AR(1), 0.9": Noise(partial(autoregressive, phi=0.9)),
    "AR(1), 0.98": Noise(partial(autoregressive, phi=0.98)),
    "AR(1), 0.98, 1.4 %, and white 1.4 %": Noise(partial(autoregressive, phi=0.98, sigma=0.014, more=0.014)),
    "AR(1), 0.98, 1 %, and white 2 %": Noise(partial(autoregressive, phi=0.98, sigma=0.01, more=0.02)),
}  # fmt: skip


@lru_cache
def true_median(name: str) -> float:
    noise = NOISES[name]
    if not math.isnan(noise.truth):
        return noise.truth
    return float(np.median(noise.draw(np.random.default_rng(99), 4_000_000)))


def measured(x: Array, tick: float | None) -> tuple[Array, MedianInterval]:
    """The samples at which the default rule stops, and their interval."""
    rule, n = default_rule(maximum=LIMIT), 400
    while rule(x[:n], 0.0, tick) is None:
        n = min(2 * n, LIMIT)
    return x[:n], median_interval(x[:n], tick=tick)


@dataclass(frozen=True)
class Rates:
    """In % of the runs (`held`: of the intervals claimed; NaN: none was), and samples in the mean."""

    claimed: float
    held: float
    samples: float
    wrong: float
    found: float


def rates(name: str, runs: int, seed: int = 1) -> Rates:
    """Measure so many pairs of series of a noise; the first of each pair gives the interval."""
    rng, again, noise, truth = np.random.default_rng(seed), np.random.default_rng(seed), NOISES[name], true_median(name)
    claimed = held = samples = wrong = found = 0
    for _ in range(runs):
        x, interval = measured(noise.times(rng, LIMIT), noise.tick)
        again.bit_generator.state = rng.bit_generator.state
        y, _ = measured(noise.times(rng, LIMIT), noise.tick)
        slow, _ = measured(noise.times(again, LIMIT, 1.03), noise.tick)
        samples += x.size
        # With a drift the level at which the samples were taken in the mean is what the median stands for.
        true = truth if math.isfinite(truth) else CENTRE * (1 + 0.01 * x.size / 2000)
        if interval.confidence >= 0.95:
            claimed += 1
            held += interval.low <= true <= interval.high
        wrong += _judge(x, y, noise.tick).differs
        found += _judge(x, slow, noise.tick).kind.value == "SLOWER"
    share = 100 / runs
    return Rates(
        share * claimed, 100 * held / claimed if claimed else math.nan, samples / runs, share * wrong, share * found
    )


def _judge(x: Array, y: Array, tick: float | None) -> Verdict:
    return judge(x, y, tick=tick)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("noises", nargs="*", metavar="NOISE", help="part of the name of a noise; default: all")
    parser.add_argument("--runs", type=int, default=1000)
    arguments = parser.parse_args()
    print(
        "| noise | claimed | held | samples | equal code: claims | 3 % found |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for name in NOISES:
        if not arguments.noises or any(part in name for part in arguments.noises):
            r = rates(name, arguments.runs)
            held = "-" if math.isnan(r.held) else f"{r.held:.1f}"
            print(
                f"| {name} | {r.claimed:.0f} | {held} | {r.samples:,.0f} | {r.wrong:.1f} | {r.found:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
