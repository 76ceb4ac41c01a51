"""What fails a build: points that are slower than their baseline, and are so again when they are measured once more.

A claim must stand twice: among all points of the comparison (Holm), and again on samples that were taken later, and on those alone.
Pooled with the first ones they would repeat the first verdict: whatever disturbed the first run, half of the samples would be of it.
As only what has failed already is asked again, the second verdict can take away claims and never add one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cuptiprof.bench.results.baseline import BaselineComparison, ComparedPoint, compare_results
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.stats.verdict import THRESHOLD

TURNS = 2
"""Where a verdict knows nothing of what differs between processes, a point must be slower in each of so many turns."""

MeasureAgain = Callable[[Sequence[Row]], Sequence[Results]]
"""Measures points once more, in turn; what it gives are turns, in each of which a point must be slower to fail."""


@dataclass(frozen=True)
class Decision:
    """Of a gate.

    Attributes:
        comparison: of what was measured first.
        failing: points that are slower in all turns, with the last verdict on each.
        passing: points that were slower at first only, with the verdict of a turn in which they were not.
    """

    comparison: BaselineComparison
    failing: tuple[ComparedPoint, ...] = ()
    passing: tuple[ComparedPoint, ...] = ()

    def lines(self, limit: float) -> list[str]:
        """What to tell the user."""
        return [
            *(f"slower by {100 * limit:g}% or more: {p.new.title}: {p.reason}" for p in self.failing),
            *(f"not slower when measured again: {p.new.title}: {p.reason}" for p in self.passing),
        ]


def decide_gate(
    base: Results,
    new: Results,
    limit: float,
    measure_again: MeasureAgain | None,
    *,
    threshold: float = THRESHOLD,
    across_chips: bool = False,
    cycles: bool = False,
) -> Decision:
    """Compare, and measure again what is slower by `limit` (0.05: 5 %); see :meth:`ComparedPoint.fails`.

    Args:
        measure_again: None where nothing can be: of results that were stored. The first verdict counts then.
        threshold, across_chips, cycles: as of ``compare_results``.
    """

    def compared(results: Results) -> BaselineComparison:
        return compare_results(base, results, threshold=threshold, across_chips=across_chips, cycles=cycles)

    comparison = compared(new)
    failing, passing = comparison.failing(limit), []
    turns = measure_again([p.new for p in failing]) if failing and measure_again is not None else ()
    for turn in turns:
        # The other points stay, so that a claim must stand among as many as before.
        again = {row.key: row for row in turn.rows}
        rows = tuple(again.get(row.key, row) for row in new.rows)
        judged = compared(replace(new, rows=rows))
        asked = {p.new.key for p in failing}
        points = [p for p in judged.points if p.new.key in asked]
        # What could not be measured again has not shown that it is as fast as before.
        passing += [p for p in points if p.verdict is not None and not p.fails(limit)]
        failing = tuple(p for p in points if p.verdict is None or p.fails(limit))
    return Decision(comparison, failing, tuple(passing))
