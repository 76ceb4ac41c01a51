"""Results, and comparisons of results, as reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from cuptiprof.bench.baseline import BaselineComparison, ComparedPoint
from cuptiprof.bench.measurement import Measurement
from cuptiprof.bench.row import Row
from cuptiprof.bench.store import Results
from cuptiprof.report.model import Column, Kind, Report, View, left_out

MOST_LINES = 20  # of a list below a table


class _Table:
    """Columns as they are added; a name that is taken gets a number."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.data: dict[str, Sequence[Any]] = {}

    def add(self, key: str, title: str, kind: Kind, values: Sequence[Any], **more: Any) -> None:
        unique, number = key, 2
        while unique in self.data:
            unique, number = f"{key}_{number}", number + 1
        self.columns.append(Column(unique, title, kind, **more))
        self.data[unique] = [_finite(v) for v in values]

    def add_if_any(self, key: str, title: str, kind: Kind, values: Sequence[Any], **more: Any) -> None:
        if any(_finite(v) is not None for v in values):
            self.add(key, title, kind, values, **more)

    def add_params(self, rows: Sequence[Row]) -> None:
        """The benchmark, and a column for each parameter that any has."""
        self.add("benchmark", "Benchmark", "text", [row.benchmark for row in rows])
        for name in dict.fromkeys(n for row in rows for n in row.params):
            values = [row.params.get(name) for row in rows]
            numbers = all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in values)
            self.add(name, name, "count" if numbers else "label", values, may_cut=not numbers)


def results_report(results: Results, *, units: str = "auto") -> Report:
    """One row a point: median GPU time, half width of its interval, counters, rates; or why it failed.

    Args:
        units: of times, for people and in CSV: "auto", "s", "ms", "us" or "ns". JSON is always in ns.
    """
    rows, table = results.rows, _Table()
    measured = [row.measurement for row in rows]

    def each(of: Callable[[Measurement], Any]) -> list[Any]:
        return [None if m is None else of(m) for m in measured]

    table.add_params(rows)
    table.add("median_ns", "Time", "duration", each(lambda m: m.median))
    table.add("half_width_percent", "+/-", "percent", each(lambda m: 100 * m.interval.half_width))
    table.add("low_ns", "Low", "duration", each(lambda m: m.interval.low), human=False)
    table.add("high_ns", "High", "duration", each(lambda m: m.interval.high), human=False)
    table.add("samples", "Samples", "count", each(lambda m: len(m.samples)))
    table.add_if_any("discarded", "Discarded", "count", each(lambda m: len(m.discarded) or None))
    table.add(
        "strategy", "Strategy", "label", each(lambda m: m.strategy), human=len({m.strategy for m in measured if m}) > 1
    )
    table.add("l2", "L2", "label", each(lambda m: m.l2), human=len({m.l2 for m in measured if m}) > 1)
    for name, unit in _counters(m for m in measured if m is not None).items():
        table.add(name, name, "metric", each(partial(_counter, name)), unit=unit)
    roof = [m.roofline if m is not None else None for m in measured]
    table.add_if_any("flop_rate", "FLOP/s", "flop_rate", [r and r.flop_rate for r in roof])
    table.add_if_any("byte_rate", "Bytes/s", "byte_rate", [r and r.byte_rate for r in roof])
    table.add_if_any("roof_percent", "Of roof", "percent", [r and 100 * r.share for r in roof])
    table.add("notes", "Notes", "text", ["; ".join(m.notes) if m else None for m in measured], human=False)
    table.add_if_any("error", "Error", "text", [str(row.failure) if row.failure else None for row in rows])
    footers = (*_note_lines(measured), *results.notes)
    return _report("Benchmarks", _header(results.environment), table, footers, units, results.environment)


def comparison_report(comparison: BaselineComparison, environment: Mapping[str, Any], *, units: str = "auto") -> Report:
    """One row a point of both runs: both medians, their ratio with its interval, the verdict and its reason."""
    points, table = comparison.points, _Table()

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
    header = [*_header(environment)]
    header += [f"{'NOTE: ' if d.loud else ''}{d}" for d in comparison.differences]
    return _report("Against the baseline", header, table, footers, units, environment)


def _report(
    title: str, header: Iterable[str], table: _Table, footers: Iterable[str], units: str, environment: Mapping[str, Any]
) -> Report:
    content = View(tuple(table.columns), table.data, footers=tuple(footers), notes={"": "no points"})
    metadata = {k: v for k, v in environment.items() if isinstance(v, (str, bool, int))}
    return Report("bench", title, tuple(header), content, {}, "", units=units, metadata=metadata)


def _header(environment: Mapping[str, Any]) -> list[str]:
    chip, driver = (str(environment.get(k, "unknown"))[:80] for k in ("chip", "driver_version"))
    if environment.get("simulated"):
        return [f"SIMULATED device (chip {chip}): not measured on a GPU"]
    commit = str(environment.get("commit") or "")[:12]
    return [f"GPU: {chip}, driver {driver}" + (f", commit {commit}" if commit else "")]


def _counter(name: str, m: Measurement) -> float | None:
    return next((c.value for c in m.counters if c.name == name), None)


def _counters(measurements: Iterable[Measurement]) -> dict[str, str]:
    """Name -> unit of all counters that any has."""
    return {c.name: c.unit for m in measurements for c in m.counters}


def _note_lines(measured: Sequence[Measurement | None]) -> list[str]:
    counted = Counter(note for m in measured if m is not None for note in dict.fromkeys(m.notes))
    lines = [f"{note} ({n} points)" if n > 1 else note for note, n in counted.most_common(MOST_LINES)]
    return [*lines, *left_out(len(counted), MOST_LINES, "notes")]


def _only(where: str, rows: Sequence[Row]) -> list[str]:
    lines = [f"{where}: {row.title}" for row in rows[:MOST_LINES]]
    return [*lines, *left_out(len(rows), MOST_LINES, f"points {where}")]


def _median(row: Row) -> float | None:
    return row.measurement.median if row.measurement is not None else None


def _change(point: ComparedPoint) -> str | None:
    v = point.verdict
    if v is None or not math.isfinite(v.ratio):
        return None
    change = f"{100 * (v.ratio - 1):+.2f}%"
    return f"{change} [{100 * (v.low - 1):+.2f}, {100 * (v.high - 1):+.2f}]" if math.isfinite(v.high) else change


def _finite(value: Any) -> Any:
    """None for numbers that no format can show."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
