"""Two runs, point by point, as a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuptiprof.bench.results.baseline import BaselineComparison, ComparedPoint
from cuptiprof.bench.results.cycles import SAID
from cuptiprof.bench.results.point_table import MAX_LINES, PointTable, run_header, table_report
from cuptiprof.bench.results.row import Row
from cuptiprof.report.model import Report, left_out


def comparison_report(comparison: BaselineComparison, environment: Mapping[str, Any], *, units: str = "auto") -> Report:
    """One row a point of both runs: both medians, their ratio with its interval, the verdict and its reason."""
    points, table = comparison.points, PointTable()

    def verdicts(of: Callable[[Any], Any]) -> list[Any]:
        return [None if p.verdict is None else of(p.verdict) for p in points]

    table.add_params([p.new for p in points])
    table.add("base_ns", "Baseline", "duration", [_median(p.base) for p in points])
    table.add("median_ns", "Time", "duration", [_median(p.new) for p in points])
    table.add("ratio", "Ratio", "metric", verdicts(lambda v: v.ratio), human=False)
    table.add("ratio_low", "Low", "metric", verdicts(lambda v: v.low), human=False)
    table.add("ratio_high", "High", "metric", verdicts(lambda v: v.high), human=False)
    table.add("change", "Change", "label", [_change(p) for p in points], machine=False)
    table.add("p_value", "p", "metric", verdicts(lambda v: v.p_value), human=False)
    table.add("effect", "Effect", "metric", verdicts(lambda v: v.effect))
    table.add("verdict", "Verdict", "label", [p.verdict.kind.value if p.verdict else "NO VERDICT" for p in points])
    # The reason of a verdict repeats its numbers; people read it where there is none or it is not clear.
    said = [None if p.verdict is not None and p.verdict.differs else p.reason for p in points]
    table.add_if_any("why", "Why", "text", said, machine=False)
    table.add("reason", "Reason", "text", [p.reason for p in points], human=False)
    counts = ", ".join(f"{n} {kind}" for kind, n in comparison.counts().items())
    footers = [f"{len(points)} points compared: {counts}" if points else "no point is in both runs"]
    footers += _only("only in the baseline", comparison.only_base)
    footers += _only("only in this run", comparison.only_new)
    header = [*run_header(environment), *([SAID] if comparison.cycles else [])]
    header += [f"{'NOTE: ' if d.loud else ''}{d}" for d in comparison.differences]
    return table_report("Against the baseline", header, table, footers, units, environment)


def _only(where: str, rows: Sequence[Row]) -> list[str]:
    lines = [f"{where}: {row.title}" for row in rows[:MAX_LINES]]
    return [*lines, *left_out(len(rows), MAX_LINES, f"points {where}")]


def _median(row: Row) -> float | None:
    return row.measurement.median if row.measurement is not None else None


def _change(point: ComparedPoint) -> str | None:
    v = point.verdict
    if v is None or not math.isfinite(v.ratio):
        return None
    change = f"{100 * (v.ratio - 1):+.2f}%"
    return f"{change} [{100 * (v.low - 1):+.2f}, {100 * (v.high - 1):+.2f}]" if math.isfinite(v.high) else change
