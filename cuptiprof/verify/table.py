"""The table of ``cuptiprof verify``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cuptiprof.report.model import Column, Report, View
from cuptiprof.verify.checking import FAILED, RIGHT, SKIPPED, WRONG, Check
from cuptiprof.verify.kernel_launch import Facts
from cuptiprof.verify.probe import Probe

_COLUMNS = (
    Column("probe", "Probe", "label"),
    Column("subject", "Subject", "label", human=False),
    Column("metric", "Metric", "label"),
    Column("expected_text", "Expected", "label", machine=False),
    Column("measured_text", "Measured", "label", machine=False),
    Column("tolerance_text", "Tolerance", "label", machine=False),
    Column("expected", "Expected", "metric_number", human=False),
    Column("measured", "Measured", "metric_number", human=False),
    Column("allowed", "Allowed deviation", "metric_number", human=False),
    Column("verdict", "Verdict", "label"),
    Column("why", "Why", "text"),
)


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4f}" if abs(value) < 1e6 else f"{value:,.1f}"


def _tolerance(check: Check) -> str:
    if math.isnan(check.expected):
        return "-"
    if check.or_more:
        return "or more"
    if check.allowed <= 1e-9 * abs(check.expected):
        return "exact"
    if check.expected:
        return f"{100 * check.allowed / abs(check.expected):.2g} %"
    return f"+-{check.allowed:.4g}"


def make_report(facts: Facts, checks: Sequence[Check]) -> Report:
    """One row a number; the JSON has the raw numbers, NaN as null."""
    count = Counter(c.verdict for c in checks)
    summary = ", ".join(f"{count[v]} {v}" for v in (RIGHT, WRONG, FAILED, SKIPPED) if count[v])
    data: dict[str, list[Any]] = {
        "probe": [c.probe for c in checks],
        "subject": [c.subject for c in checks],
        "metric": [c.metric for c in checks],
        "expected_text": [_number(c.expected) for c in checks],
        "measured_text": [_number(c.measured) for c in checks],
        "tolerance_text": [_tolerance(c) for c in checks],
        "expected": [c.expected for c in checks],
        "measured": [c.measured for c in checks],
        "allowed": [c.allowed for c in checks],
        "verdict": [c.verdict for c in checks],
        "why": [f"{c.reason} ({c.why})" if c.reason and c.why else c.reason or c.why for c in checks],
    }
    header = [f"Device: {facts.name}"]
    if facts.simulated:
        header.insert(
            0, "SIMULATED device: this shows that the profiler passes numbers on, not that a GPU counts right"
        )
    return Report(
        view="verify",
        title="Probes: kernels whose counters are known by arithmetic",
        header=tuple(header),
        content=View(_COLUMNS, data, footers=(summary or "nothing ran",), facts={"counts": dict(count)}),
        losses={},
        losses_line="",
        metadata={"simulated": facts.simulated, "chip": facts.chip, "compute_capability": list(facts.compute)},
    )


def list_report(probes: Sequence[Probe]) -> Report:
    """Names and what they do."""
    columns = (Column("probe", "Probe", "label"), Column("subject", "Subject", "label"), Column("what", "What", "text"))
    data = {
        "probe": [p.name for p in probes],
        "subject": [p.subject for p in probes],
        "what": [p.what for p in probes],
    }
    return Report("probes", f"{len(probes)} probes", (), View(columns, data), {}, "")
