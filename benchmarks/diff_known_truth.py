"""Does the difference of two runs claim what is not there, and find what is? Runs whose truth is known, of recorded durations.

    python -m benchmarks.diff_known_truth [--pairs 200]

A run repeats one training step that was recorded on a V100 (1,219 kernels, copies and sets; 23 operators launch them): each piece of work takes one of
the times that work of its kind took in the recording, times a noise that all work of a step shares, an autoregression of first order. So steps resemble each other, as they do
while clocks wander. Pairs are compared by operator. Prints a row a noise: % of equal pairs in which anything is claimed, in the table or of the
steps; of pairs in which one operator of 1 % of the time or more takes 5 % longer, those in which that is said, and in which it is named
first. Seeded: the same numbers each time. The table of docs/diff.md; ``tests/unit/test_diff_known_truth.py`` runs a little of it every time.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

import cuptiprof
from cuptiprof.analysis.comparison.run_diff import RunDiff, diff_runs
from cuptiprof.analysis.comparison.work_groups import grouped_work
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.stats.verdict import Kind

SLOWER = 1.05
GAP = 1_000  # ns, between two pieces of work
MIN_PERCENT = 1.0


@dataclass(frozen=True)
class Noise:
    """What all work of a step shares: ``exp(sigma x)``, x an autoregression of first order with coefficient ``phi`` and variance 1."""

    steps: int
    sigma: float
    phi: float


NOISES = (
    Noise(60, 0.0, 0.0),
    *(Noise(60, 0.02, phi) for phi in (0.0, 0.5, 0.8, 0.95)),
    *(Noise(200, 0.02, phi) for phi in (0.5, 0.8, 0.95)),
    Noise(10, 0.0, 0.0),
    *(Noise(10, 0.02, phi) for phi in (0.0, 0.5, 0.8, 0.95)),
)


@dataclass(frozen=True)
class Recorded:
    """Work of one step: operator, kernel and configuration of each, and how long its kind took, shape (kinds, most) with counts."""

    operators: list[str]
    names: list[str]
    configs: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


@lru_cache(maxsize=1)
def recorded() -> Recorded:
    with as_file(files("cuptiprof").joinpath("sim/traces/train-v100.json.gz")) as path:
        run = cuptiprof.open(path)
    work = grouped_work(run, "operator")
    _, kind, counts = np.unique(work.like, return_inverse=True, return_counts=True)
    kind = kind.reshape(-1)
    times = np.zeros((len(counts), counts.max()), np.int64)
    order = np.argsort(kind, kind="stable")
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    times[kind[order], place] = work.duration[order]
    step = np.flatnonzero(work.step == 2)
    step = step[np.argsort(work.start[step])]
    return Recorded(
        [work.names[g] for g in work.group[step].tolist()],
        [str(work.like_names[k][0]) for k in work.like[step].tolist()],
        work.like[step],
        kind[step],
        times,
        counts,
    )


def make_run(rng: np.random.Generator, noise: Noise, slower: str = "") -> Result:
    """A run of so many steps; the work of the operator `slower` takes 5 % longer."""
    of = recorded()
    size = len(of.kind)
    shared = np.empty(noise.steps)
    level = rng.normal()
    for i in range(noise.steps):
        shared[i] = level
        level = noise.phi * level + np.sqrt(1 - noise.phi**2) * rng.normal()
    kind = np.tile(of.kind, noise.steps)
    times = of.times[kind, (rng.random(len(kind)) * of.counts[kind]).astype(np.int64)].astype(np.float64)
    times *= np.repeat(np.exp(noise.sigma * shared), size)
    times[np.tile([name == slower for name in of.operators], noise.steps)] *= SLOWER
    duration = np.rint(times).astype(np.int64)
    start = np.cumsum(duration + GAP) - duration
    strings = Strings()
    used, config = np.unique(of.configs, return_inverse=True)
    configs = Table.from_columns("launch_configs", {"grid_x": used + 1, "block_x": np.full(len(used), 128)}, strings)
    codes = {column: np.tile([strings.code(text) for text in texts], noise.steps)
             for column, texts in (("name", of.names), ("operator", [o.replace("/", "\\/") for o in of.operators]))}  # fmt: skip
    kernels = Table.from_columns(
        "kernels",
        {
            **codes,
            "start": start,
            "end": start + duration,
            "config": np.tile(config.reshape(-1), noise.steps),
            "step": np.repeat(np.arange(noise.steps) + 1, size),
            "correlation_id": np.arange(len(start)) + 1,
        },
        strings,
        configs,
    )
    markers = Table.from_columns(
        "markers",
        {
            "name": [f"ProfilerStep#{i}" for i in range(noise.steps)],
            "category": ["step"] * noise.steps,
            "id": np.arange(noise.steps),
            "start": start[::size],
            "end": (start + duration)[size - 1 :: size],
        },
        strings,
    )
    return Result({"kernels": kernels, "markers": markers, "launch_configs": configs})


def large_operators() -> list[str]:
    """Those of 1 % of the time or more."""
    rows = make_run(np.random.default_rng(0), Noise(5, 0.0, 0.0))
    diff = diff_runs(rows, rows, "operator")
    return sorted(
        name for name, share in zip(diff.names, diff.base.share.tolist(), strict=True) if share >= MIN_PERCENT
    )


def claims(diff: RunDiff) -> bool:
    return any(verdict.differs for _, verdict in diff.all_verdicts())


def judge_pairs(noise: Noise, pairs: int, seed: int = 1) -> tuple[int, int, int]:
    """Of so many pairs: equal ones of which anything is claimed; slower ones that are found, and named first."""
    rng = np.random.default_rng(seed)
    operators = large_operators()
    false = found = first = 0
    for _ in range(pairs):
        base = make_run(rng, noise)
        false += claims(diff_runs(base, make_run(rng, noise), "operator"))
        slower = operators[rng.integers(len(operators))]
        diff = diff_runs(base, make_run(rng, noise, slower), "operator")
        verdict = diff.judged.verdicts.get(diff.names.index(slower))
        said = verdict is not None and verdict.kind is Kind.SLOWER
        found += said
        first += said and diff.names[0] == slower
    return false, found, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    pairs = parser.parse_args().pairs
    print("steps  sigma(%)   phi  claimed of equal(%)  found(%)  first(%)")
    for noise in NOISES:
        counts = [100 * n / pairs for n in judge_pairs(noise, pairs)]
        print(f"{noise.steps:5}  {100 * noise.sigma:8.0f}  {noise.phi:4}  {counts[0]:19.1f}  {counts[1]:8.1f}  {counts[2]:8.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
