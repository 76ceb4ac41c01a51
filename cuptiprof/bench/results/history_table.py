"""A folder of results as a report: a row for each run of a point's times between two steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cuptiprof.bench.results.point_table import MAX_LINES, PointTable
from cuptiprof.bench.results.points import params_key
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.trends import PointTrend
from cuptiprof.report.model import Report, View, left_out


def history_report(trends: Sequence[PointTrend], notes: Sequence[str] = (), *, units: str = "auto") -> Report:
    """Since when each point takes how long.

    Args:
        notes: what a reader must know of the files.
        units: of times, for people and in CSV: "auto", "s", "ms", "us" or "ns". JSON is always in ns.
    """
    table = PointTable()
    rows = [(t.of, s) for t in trends for s in t.segments]
    table.add_params([Row(p.benchmark, p.params) for p, _ in rows])
    for name in ("chip", "driver", "strategy", "l2"):
        several = len({t.of.conditions[name] for t in trends}) > 1
        title = {"chip": "GPU", "l2": "L2"}.get(name, name.title())
        table.add(name, title, "label", [p.conditions[name] for p, _ in rows], human=several)
    table.add("since", "Since", "label", [s.readings[0].date for _, s in rows])
    table.add("commit", "Commit", "label", [s.readings[0].label for _, s in rows])
    table.add("until", "Until", "label", [s.readings[-1].date for _, s in rows], human=False)
    table.add("until_commit", "Until commit", "label", [s.readings[-1].label for _, s in rows], human=False)
    table.add("runs", "Runs", "count", [len(s.readings) for _, s in rows])
    table.add("median_ns", "Time", "duration", [s.median for _, s in rows])
    deviations = [float(np.std(np.log([r.ns for r in s.readings]))) if len(s.readings) > 1 else None for _, s in rows]
    table.add("deviation_percent", "Between runs", "percent", [None if d is None else 100 * d for d in deviations])
    table.add("change_percent", "Change", "percent", [100 * s.change for _, s in rows], human=False)
    said = [None if math.isnan(s.change) else f"{100 * s.change:+.2f}%" for _, s in rows]
    table.add_if_any("change", "Change", "label", said, machine=False)
    table.add("p_value", "p", "metric", [s.p_value for _, s in rows], human=False)
    table.add_if_any("with_it", "Also another", "text", ["; ".join(s.with_it) or None for _, s in rows])
    content = View(tuple(table.columns), table.data, footers=(*_footers(trends), *notes), notes={"": "no points"})
    chips = sorted({t.of.conditions["chip"] for t in trends})
    header = [
        ("SIMULATED, not measured on a GPU: " if c.endswith("(simulated)") else "measured on: ") + c for c in chips
    ]
    return Report("bench-history", "Times by commit", tuple(header), content, {}, "", units=units)


def _footers(trends: Sequence[PointTrend]) -> list[str]:
    points = {(t.of.benchmark, params_key(t.of.params)) for t in trends}
    steps = sum(len(t.segments) - 1 for t in trends)
    lines = [f"points: {len(points)}, results: {sum(len(t.of.readings) for t in trends)}, steps: {steps}"]
    if len(trends) > len(points):
        lines.append(
            f"{len(trends)} series: runs on another GPU or driver, or measured in another way, are not compared with each other"
        )
    few = [
        f"{t.of.title}: too few runs ({len(t.of.readings)}) to tell a step from chance" for t in trends if not t.enough
    ]
    return [*lines, *few[:MAX_LINES], *left_out(len(few), MAX_LINES, "series with too few runs")]
