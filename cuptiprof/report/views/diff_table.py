"""Two runs held against each other as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from cuptiprof.analysis.comparison.diff_verdicts import MIN_SAMPLES, MIN_SHARE
from cuptiprof.analysis.comparison.run_diff import RunDiff
from cuptiprof.report.model import Column, View, left_out
from cuptiprof.stats.verdict import Kind, Verdict
from cuptiprof.text.metric_units import infer_unit

_TITLES = {"kernel": "Kernel", "region": "Region", "operator": "Operator", "module": "Module", "step": "Step"}
_HOST = {"operator": "Host", "region": "Host", "step": "Length"}
_OF_STEPS = {"wall": "Length", "gpu": "GPU time"}
_VERDICTS = (
    Column("verdict", "Verdict", "label"),
    Column("interval", "Interval", "label", machine=False, rank=2),
    Column("ratio", "Ratio", "metric", human=False),
    Column("ratio_low", "Low", "metric", human=False),
    Column("ratio_high", "High", "metric", human=False),
    Column("p_value", "p", "metric", human=False),
    Column("effect", "Effect", "metric", human=False),
    Column("reason", "Reason", "text", human=False),
)


def view(diff: RunDiff, *, limit: int | None = None) -> View:
    """One row a kernel, region, operator, module or step; what certainly differs first, by absolute change of time.

    ``base_ns`` and ``new_ns`` are of the whole runs, ``change_ns`` of a step where both have steps (``change_per``).
    """
    rows = range(len(diff))[:limit]
    verdicts = [diff.judged.verdicts.get(row) for row in rows]
    columns, data = _columns(diff), _numbers(diff)
    data |= {
        "status": [diff.status(row) for row in rows],
        "change": [_change(diff, row) for row in rows],
        "verdict": [v.kind.value if v is not None else None for v in verdicts],
        "interval": [_interval(v) for v in verdicts],
        "ratio": _of(verdicts, lambda v: v.ratio),
        "ratio_low": _of(verdicts, lambda v: v.low),
        "ratio_high": _of(verdicts, lambda v: v.high if math.isfinite(v.high) else None),
        "p_value": _of(verdicts, lambda v: v.p_value),
        "effect": _of(verdicts, lambda v: v.effect),
        "reason": [
            v.reason if v is not None else _no_verdict(diff, row) for row, v in zip(rows, verdicts, strict=True)
        ],
        "name": diff.names,
    }
    return View(
        columns=columns,
        data={column.key: list(data[column.key])[: len(rows)] for column in columns},
        footers=(*left_out(len(diff), len(rows)), *(_footers(diff) if len(diff) else ())),
        notes={"": "Neither run has any GPU work."},
        facts=_facts(diff),
    )


def _columns(diff: RunDiff) -> tuple[Column, ...]:
    by_step = diff.per == "step"
    host, has_host = (
        _HOST.get(diff.by, ""),
        diff.by in _HOST and bool(max(diff.base.host.max(initial=-1), diff.new.host.max(initial=-1)) >= 0),
    )
    counters = [
        Column(f"{side}_{metric}", f"{metric} {side}", "metric", unit=infer_unit(metric, ""), rank=10 + i)
        for i, metric in enumerate(diff.base.counters)
        for side in ("base", "new")
    ]
    return (
        Column("change_ns", "Change", "duration", min_width=8),
        Column("change", "Change(%)", "label", machine=False),
        Column("change_pct", "Change(%)", "percent", human=False),
        *_VERDICTS,
        Column("base_step_ns", "Base", "duration", min_width=8, human=by_step),
        Column("new_step_ns", "New", "duration", min_width=8, human=by_step),
        Column("base_ns", "Base", "duration", min_width=8, human=not by_step),
        Column("new_ns", "New", "duration", min_width=8, human=not by_step),
        Column("base_share_pct", "Base(%)", "percent", rank=5),
        Column("new_share_pct", "New(%)", "percent", rank=4),
        Column("base_launches", "Base launches", "count", rank=7),
        Column("new_launches", "New launches", "count", rank=6),
        Column("base_calls", "Base calls", "count", human=False, machine=has_host),
        Column("new_calls", "New calls", "count", human=False, machine=has_host),
        Column("base_host_ns", f"{host} base", "duration", human=has_host, machine=has_host, rank=9),
        Column("new_host_ns", f"{host} new", "duration", human=has_host, machine=has_host, rank=8),
        *counters,
        Column("status", "In", "label", human=False),
        Column("name", _TITLES[diff.by], "text", is_function=diff.by == "kernel"),
    )  # fmt: skip


def _numbers(diff: RunDiff) -> dict[str, Sequence[Any]]:
    out: dict[str, Sequence[Any]] = {"change_ns": diff.change.tolist(), "change_pct": []}
    for side, run in (("base", diff.base), ("new", diff.new)):
        out |= {
            f"{side}_ns": run.time.tolist(),
            f"{side}_step_ns": run.step_time.tolist(),
            f"{side}_share_pct": run.share.tolist(),
            f"{side}_launches": run.launches.tolist(),
            f"{side}_calls": [None if n < 0 else n for n in run.calls.tolist()],
            f"{side}_host_ns": [None if n < 0 else n for n in run.host.tolist()],
            **{f"{side}_{metric}": values.tolist() for metric, values in run.counters.items()},
        }
    out["change_pct"] = [_percent(diff, row) for row in range(len(diff))]
    return out


def _percent(diff: RunDiff, row: int) -> float | None:
    before = float((diff.base.step_time if diff.per == "step" else diff.base.time)[row])
    return 100.0 * float(diff.change[row]) / before if before else None


def _change(diff: RunDiff, row: int) -> str | None:
    status, percent = diff.status(row), _percent(diff, row)
    if status != "both":
        return status
    return None if percent is None else f"{percent:+.2f}%"


def _interval(verdict: Verdict | None) -> str | None:
    if verdict is None or not math.isfinite(verdict.high) or not verdict.low:
        return None
    return f"[{100 * (verdict.low - 1):+.2f}, {100 * (verdict.high - 1):+.2f}]"


def _of(verdicts: Sequence[Verdict | None], what: Callable[[Verdict], Any]) -> list[Any]:
    return [None if v is None else what(v) for v in verdicts]


def _no_verdict(diff: RunDiff, row: int) -> str:
    if not diff.judged.unit:
        return diff.incomparable
    if diff.status(row) != "both":
        return f"only in the {'base' if diff.status(row) == 'gone' else 'new'} run"
    return diff.judged.reasons.get(row, f"below {100 * MIN_SHARE:g} % of the time of both runs: not judged")


def _footers(diff: RunDiff) -> tuple[str, ...]:
    lines = [f"{_OF_STEPS[name]} of a step: {verdict}" for name, verdict in diff.judged.of_steps.items()]
    statuses = [diff.status(row) for row in range(len(diff))]
    kinds = [v.kind for v in diff.judged.verdicts.values()]
    counts = [(sum(k is kind for k in kinds), kind.value) for kind in Kind]
    counts += [(statuses.count(s), s) for s in ("new", "gone")]
    said = ", ".join(f"{n} {what}" for n, what in counts if n)
    lines.append(f"{len(diff)} compared{f': {said}' if said else ''}.")
    if not diff.judged.unit:
        return (*lines, f"No verdicts: {diff.incomparable}.")
    if not diff.judged.verdicts:
        return (*lines, f"No verdicts: both runs need {MIN_SAMPLES} steps, or {MIN_SAMPLES} launches that do the same.")
    what = "the time that it takes in a step" if diff.judged.unit == "step" else "its launches"
    wrong = "of runs that do not differ, 5 % have SLOWER or FASTER anywhere"
    return (
        *lines,
        "Change: of the mean time of a step." if diff.per == "step" else "Change: of the time in the whole run.",
        f"Verdict, interval (%): of the median of {what}; {wrong}.",
        "What differs between processes (clocks, where buffers lie) looks like a difference: there is one of each side.",
    )


def _facts(diff: RunDiff) -> dict[str, Any]:
    return {
        "by": diff.by,
        "change_per": diff.per,
        "steps": {"base": diff.base.steps, "new": diff.new.steps},
        "judged_by": diff.judged.unit or None,
        "incomparable": diff.incomparable or None,
        "step_verdicts": {
            name: {
                "verdict": v.kind.value,
                "ratio": v.ratio,
                "ratio_low": v.low,
                "ratio_high": v.high if math.isfinite(v.high) else None,
                "p_value": v.p_value,
                "effect": v.effect,
            }
            for name, v in diff.judged.of_steps.items()
        },
        "total_rows": len(diff),
    }
