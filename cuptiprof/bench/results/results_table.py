"""The points of a run as a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cuptiprof.bench.results.in_turn import Group, groups_of, summary_lines
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.point_table import MAX_LINES, PointTable, run_header, table_report
from cuptiprof.bench.results.row import Row
from cuptiprof.report.model import Report, left_out
from cuptiprof.stats.statistics import mad
from cuptiprof.text.units import format_energy

MAX_NAMED = 3
"""Points that a note names."""


def results_report(
    rows: Sequence[Row],
    environment: Mapping[str, Any],
    notes: Sequence[str] = (),
    *,
    units: str = "auto",
    groups: Mapping[tuple[str, str], Group] | None = None,
) -> Report:
    """One row a point: median GPU time, half width of its interval, counters, rates; or why it failed.

    Args:
        environment: of the run; notes: what a reader must know of the file.
        units: of times, for people and in CSV: "auto", "s", "ms", "us" or "ns". JSON is always in ns.
        groups: key of a row -> those that it was measured in turn with (default: as the rows say).
    """
    table = PointTable()
    measured = [row.measurement for row in rows]

    def each(of: Callable[[Measurement], Any]) -> list[Any]:
        return [None if m is None else of(m) for m in measured]

    table.add_params(rows)
    table.add("median_ns", "Time", "duration", each(lambda m: m.median))
    table.add("half_width_percent", "+/-", "percent", each(lambda m: 100 * m.interval.half_width))
    table.add("low_ns", "Low", "duration", each(lambda m: m.interval.low), human=False)
    table.add("high_ns", "High", "duration", each(lambda m: m.interval.high), human=False)
    table.add("min_ns", "Min", "duration", each(lambda m: float(m.samples.min())), human=False)
    table.add("p95_ns", "P95", "duration", each(lambda m: float(np.quantile(m.samples, 0.95))), human=False)
    table.add(
        "spread_percent",
        "Spread",
        "percent",
        each(lambda m: 100 * mad(m.samples) / m.median if m.median else None),
        human=False,
    )
    groups = groups_of(rows) if groups is None else groups
    verdicts = [groups[row.key].verdict(row) if row.key in groups else None for row in rows]
    table.add_if_any(
        "speedup", "Speed-up", "label", [None if v is None else f"x{1 / v.ratio:.3f}" for v in verdicts], machine=False
    )
    table.add_if_any("ratio", "Ratio", "metric", [v and v.ratio for v in verdicts], human=False)
    table.add_if_any("ratio_low", "Low", "metric", [v and v.low for v in verdicts], human=False)
    table.add_if_any("ratio_high", "High", "metric", [v and v.high for v in verdicts], human=False)
    table.add_if_any("verdict", "Verdict", "label", [v and v.kind.value for v in verdicts])
    table.add("samples", "Samples", "count", each(lambda m: len(m.samples)))
    table.add_if_any("discarded", "Discarded", "count", each(lambda m: len(m.discarded) or None))
    table.add(
        "strategy", "Strategy", "label", each(lambda m: m.strategy), human=len({m.strategy for m in measured if m}) > 1
    )
    table.add("l2", "L2", "label", each(lambda m: m.l2), human=len({m.l2 for m in measured if m}) > 1)
    for name, unit in _counters(m for m in measured if m is not None).items():
        table.add(name, name, "metric", each(partial(_counter, name)), unit=unit)
    clock = each(lambda m: round(float(np.nanmedian(m.sm_hz)) / 1e6, 1) if len(m.sm_hz) else None)
    table.add_if_any("sm_mhz", "SM clock", "metric", clock, unit="MHz", human=False)
    energy = each(lambda m: m.energy_per_call if math.isfinite(m.energy_per_call) else None)
    said = [None if e is None else format_energy(e) for e in energy]
    table.add_if_any("energy", "Energy", "label", said, machine=False)
    table.add_if_any("energy_joules", "Energy", "metric", energy, unit="J", human=False)
    table.add_if_any("peak_memory_bytes", "Peak memory", "bytes", each(lambda m: m.peak_memory))
    roof = [m.roofline if m is not None else None for m in measured]
    table.add_if_any("flop_rate", "FLOP/s", "flop_rate", [r and r.flop_rate for r in roof])
    table.add_if_any("byte_rate", "Bytes/s", "byte_rate", [r and r.byte_rate for r in roof])
    table.add_if_any("roof_percent", "Of roof", "percent", [r and 100 * r.share for r in roof])
    table.add("notes", "Notes", "text", ["; ".join(m.notes) if m else None for m in measured], human=False)
    table.add_if_any("error", "Error", "text", [str(row.failure) if row.failure else None for row in rows])
    footers = (*summary_lines(rows, groups), *_note_lines(rows), *notes)
    return table_report("Benchmarks", run_header(environment), table, footers, units, environment)


def _counter(name: str, m: Measurement) -> float | None:
    return next((c.value for c in m.counters if c.name == name), None)


def _counters(measurements: Iterable[Measurement]) -> dict[str, str]:
    """Name -> unit of all counters that any has."""
    return {c.name: c.unit for m in measurements for c in m.counters}


def _note_lines(rows: Sequence[Row]) -> list[str]:
    """What most points say first; a note names its points, or says that it is of all."""
    said: dict[str, list[str]] = {}
    for row in rows:
        for note in dict.fromkeys(row.measurement.notes if row.measurement is not None else ()):
            said.setdefault(note, []).append(row.title)
    by_points = sorted(said.items(), key=lambda item: -len(item[1]))
    lines = [f"{_points(titles, len(rows))}{note}" for note, titles in by_points[:MAX_LINES]]
    return [*lines, *left_out(len(said), MAX_LINES, "notes")]


def _points(titles: list[str], of: int) -> str:
    if of == 1:
        return ""
    if len(titles) == of:
        return f"all {of} points: "
    more = f" and {len(titles) - MAX_NAMED} more" if len(titles) > MAX_NAMED else ""
    return f"{', '.join(titles[:MAX_NAMED])}{more}: "
