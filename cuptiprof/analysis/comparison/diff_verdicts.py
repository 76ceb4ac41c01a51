"""Whether the times of two runs differ: a verdict a group, by steps or by launches, that holds for all groups together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cuptiprof.analysis.comparison.diff_samples import Samples, Sides, samples_of_groups, samples_of_steps
from cuptiprof.stats.between import judge_sweep, student_quantile
from cuptiprof.stats.verdict import ALPHA, THRESHOLD, Kind, Verdict, judge

MIN_SAMPLES = 40
"""Steps or launches of each run, below which one cannot see how much they depend on each other: ``dependence`` looks at means of blocks
of ten or twenty. Of stretches of 20 steps whose noise has an autocorrelation of 0.8, two of one process in five would be told apart."""
MIN_SHARE = 0.001
"""Share of the time of both runs below which a group is not judged: the more are, the less can be claimed of each."""
MAX_JUDGED = 1000
ASSUMED = 0.95
"""Autocorrelation from step to step, where there are too few to see it."""
CLOCK_NS, MICROSECOND = 32, 1000
"""Resolution of the times of records (docs/benchmark-statistics.md), and of files that have whole microseconds."""


@dataclass(frozen=True)
class Judged:
    """The verdicts on two runs.

    Attributes:
        unit: what was held against each other, "step" or "launch".
        verdicts: group -> verdict; reasons: group -> why there is none.
        of_steps: on "wall" and "gpu" time of a step; empty where launches were judged.
    """

    unit: str
    verdicts: Mapping[int, Verdict]
    reasons: Mapping[int, str]
    of_steps: Mapping[str, Verdict]


def judge_groups(sides: Sides, threshold: float = THRESHOLD, alpha: float = ALPHA) -> Judged:
    """Which groups take longer, or less long, in the new run. That any is called SLOWER or FASTER wrongly happens in `alpha` of the
    pairs of runs at most (Holm: ``judge_sweep``).

    Where both runs have 40 steps the samples are the time that a group takes in each step in which it ran, and of all groups the GPU time and the
    length of the steps. Else they are launches, each over the median of those of both runs that do the same (``GroupedWork.like``); what is claimed of
    them must also stand for steps that are assumed to have an autocorrelation of 0.95, which so few cannot show.
    The test is ``judge``: the interval of the ratio of medians and the Mann-Whitney test, both of which allow for correlation in time.
    It knows nothing of what differs from process to process (clocks, where buffers lie): of each side there is one.
    """
    by_steps = min(len(work.steps) for work in sides.work) >= MIN_SAMPLES
    before, now = sides.totals()
    both = before + now
    large = np.flatnonzero((before > 0) & (now > 0) & (both >= MIN_SHARE * both.sum()))
    large = large[np.argsort(-both[large], kind="stable")][:MAX_JUDGED]
    series = dict(zip(large.tolist(), samples_of_groups(sides, large, by_steps), strict=True))
    what = "steps" if by_steps else "launches that do the same"
    reasons = {
        group: f"{len(of.base)} and {len(of.new)} {what}: too few to be judged"
        for group, of in series.items()
        if of.fewest < MIN_SAMPLES
    }
    steps = samples_of_steps(sides) if by_steps else {}
    tests: list[tuple[int | str, Samples]] = [
        (key, of) for key, of in (*series.items(), *steps.items()) if of.fewest >= MIN_SAMPLES
    ]
    # What a file in whole microseconds says of launches of one length would else look exact.
    whole = all(not (work.duration % MICROSECOND).any() for work in sides.work)
    points = [partial(_judge, of, threshold, MICROSECOND if whole else CLOCK_NS) for _, of in tests]
    found = dict(zip((key for key, _ in tests), judge_sweep(points, alpha), strict=True))
    return Judged(
        "step" if by_steps else "launch",
        {key: verdict for key, verdict in found.items() if isinstance(key, int)},
        reasons,
        {key: verdict for key, verdict in found.items() if isinstance(key, str)},
    )


def _judge(of: Samples, threshold: float, tick: float, alpha: float) -> Verdict:
    verdict = judge(of.base, of.new, threshold=threshold, alpha=alpha, tick=tick)
    if not verdict.differs or of.of_steps is None:
        return verdict
    # Student's interval of the mean of an autoregression of first order: its error is sqrt((1 + phi) / (1 - phi)) of that of independent steps
    # (Priestley, Spectral Analysis and Time Series, 5.3.2).
    a, b = (np.log(medians) for medians in of.of_steps)
    error = math.sqrt((a.var(ddof=1) / a.size + b.var(ddof=1) / b.size) * (1 + ASSUMED) / (1 - ASSUMED))
    reach = student_quantile(1 - alpha / 2, a.size + b.size - 2) * error
    if abs(math.log(verdict.ratio)) > reach:
        return verdict
    why = f"{a.size} and {b.size} steps are too few: they vary so much that it may be chance"
    return replace(verdict, kind=Kind.UNSURE, reason=f"{verdict.reason}; {why}")
