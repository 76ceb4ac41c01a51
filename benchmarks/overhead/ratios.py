"""What one condition is against another, from rounds of steps: the harness's verdicts on what a round shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common import ratio, significant
from benchmarks.overhead.rounds import Cell
from cuptiprof.bench import Verdict, judge, judge_pairs
from cuptiprof.stats.statistics import median_interval, quantiles
from cuptiprof.stats.verdict import MIN_CONTRASTS

Rounds = Sequence[Sequence[float]]
"""Times of steps, ns, by round."""


def judge_rounds(over: Rounds, under: Rounds) -> Verdict | None:
    """`over` against `under`, which were measured in the same rounds, in turn; None: nothing to compare.

    From the medians of the rounds, two rounds giving one contrast (``judge_pairs``), so that drift between rounds drops out. Where
    there are fewer than 12 rounds, as in a quick run, from all steps (``judge``): then drift between rounds is noise.
    """
    if len(over) != len(under) or any(not len(r) for r in (*over, *under)):
        raise ValueError("the same rounds on both sides, none of them empty")
    if not over:
        return None
    if len(over) // 2 >= MIN_CONTRASTS:
        return judge_pairs([np.median(r) for r in under], [np.median(r) for r in over])
    return judge(np.concatenate(under), np.concatenate(over))


def in_common(over: Cell, under: Cell, what: str) -> tuple[Rounds, Rounds]:
    """The rounds that both have; when there are enough, only whole pairs of rounds: the second goes through the conditions
    the other way round."""
    a = dict(zip(over.rounds, getattr(over, what), strict=True))
    b = dict(zip(under.rounds, getattr(under, what), strict=True))
    both = [n for n in sorted(a) if n in b and a[n] and b[n]]
    paired = [n for n in both if n ^ 1 in both]
    if len(paired) // 2 >= MIN_CONTRASTS:
        both = paired
    return [a[n] for n in both], [b[n] for n in both]


def ratio_of(over: Cell | None, under: Cell | None, what: str = "during") -> dict[str, Any] | None:
    """Verdict as JSON; None where there is nothing to compare."""
    if over is None or under is None:
        return None
    verdict = judge_rounds(*in_common(over, under, what))
    return None if verdict is None else {**ratio(verdict), "rounds": len(in_common(over, under, what)[0])}


def residue_of(cell: Cell) -> dict[str, Any] | None:
    """Steps after the stop against those before the start of the same round, which lie next to each other."""
    verdict = judge_rounds(cell.after, cell.before)
    return None if verdict is None else {**ratio(verdict), "rounds": len(cell.rounds)}


def steps_summary(rounds: Rounds, scale: float = 1.0) -> dict[str, Any]:
    """Median with interval and 99th percentile of all steps, in units of `scale` ns; ``samples``: how many."""
    steps = np.concatenate(rounds)
    i = median_interval(steps)
    times = {"median": i.median, "low": i.low, "high": i.high, "p99": float(quantiles(steps, [0.99])[0])}
    return {**{k: significant(v / scale) for k, v in times.items()}, "confidence": i.confidence, "samples": i.samples}
