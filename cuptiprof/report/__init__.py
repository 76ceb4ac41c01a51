"""Reports: a view turns a Result into a table, a renderer turns the table into text.

A new view is one file with one function in `views/` and one line in its `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuptiprof.analysis.comparison.run_diff import RunDiff
from cuptiprof.analysis.counter_values.counter_record import CounterRecord
from cuptiprof.data.coverage import coverage_line
from cuptiprof.data.result import Losses, Result
from cuptiprof.errors import ResultError
from cuptiprof.report.model import Column, Report, View
from cuptiprof.report.views import VIEWS, diff_table
from cuptiprof.text.units import check_time_unit

__all__ = ["VIEWS", "Column", "Report", "View", "make_diff_report", "make_report"]


_TIMES_OF_A_MODEL = "GPU times are a model's; host and idle times are this machine's CPU's and say nothing about a GPU"


def make_report(
    result: Result, view: str = "overview", *, units: str = "auto", ranks: Sequence[Result] = (), **options: Any
) -> Report:
    """Build a view.

    Args:
        view: one of ``VIEWS``.
        units: of times, for people and in CSV: "auto", "s", "ms", "us" or "ns". JSON is always in ns.
        ranks: results of further ranks, whose rows are shown as well, by the views that can (``VIEWS[view].of_ranks``).
        options: ``demangle`` (default True), ``limit`` (rows a block), and for the summary ``per_gpu``.

    Raises:
        ResultError: an unknown view or unit, a negative limit, or ranks for a view of one.
    """
    if view not in VIEWS:
        raise ResultError(f"unknown view {view!r}", hint=f"one of: {', '.join(VIEWS)}")
    check_time_unit(units)
    if ranks and not VIEWS[view].of_ranks:
        raise ResultError(
            f"the view {view!r} is of one rank",
            hint=f"of several: {', '.join(n for n, v in VIEWS.items() if v.of_ranks)}",
        )
    _check_limit(options.get("limit"))
    if ranks:
        options["ranks"] = [other.timed() if VIEWS[view].of_times else other for other in ranks]
    losses = Losses({name: sum(of.losses[name] for of in (result, *ranks)) for name in result.losses})
    return Report(
        view=view,
        title=VIEWS[view].title,
        header=tuple(dict.fromkeys(line for of in (result, *ranks) for line in _header(of))),
        content=VIEWS[view].make(result.timed() if VIEWS[view].of_times else result, **options),
        losses=dict(losses),
        losses_line=losses.line(),
        units=units,
        metadata=_said(result),
    )


def make_diff_report(
    diff: RunDiff,
    base: Result,
    new: Result,
    *,
    units: str = "auto",
    limit: int | None = None,
    names: tuple[str, str] = ("base", "new"),
) -> Report:
    """Two runs that were compared, as a table.

    Args:
        units, limit: as of :func:`make_report`.
        names: what the two runs are called.

    Raises:
        ResultError: an unknown unit or a negative limit.
    """
    check_time_unit(units)
    _check_limit(limit)
    headers = [_header(base), _header(new)]
    both = [line for line in headers[0] if line in headers[1]]
    lines = [f"NOTE: {diff.incomparable}"] if diff.incomparable else []
    for side, name, run, of, header in zip(
        ("Base", "New"), names, (base, new), (diff.base, diff.new), headers, strict=True
    ):
        steps = f"{of.steps:,} steps" if of.steps != 1 else "1 step"
        launches = int(of.launches.sum())
        lines.append(f"{side}: {name}, {steps}, {launches:,} kernels, copies and sets")
        lines += [f"{side}: {line}" for line in header if line not in both]
        if not launches:
            lines.append(f"NOTE: the {side.lower()} run has no GPU work")
        if run.losses:
            lines.append(f"{side}: {run.losses.line()}")
    losses = Losses({name: base.losses[name] + new.losses[name] for name in base.losses})
    return Report(
        view="diff",
        title=f"Difference of two runs by {diff.by}",
        header=(*lines, *both),
        content=diff_table.view(diff, limit=limit),
        losses=dict(losses),
        losses_line=losses.line(),
        units=units,
        metadata={"base": _said(base), "new": _said(new)},
    )


def _check_limit(limit: Any) -> None:
    if limit is not None and limit < 0:
        raise ResultError(f"limit={limit}: rows to show cannot be negative")


def _said(result: Result) -> dict[str, Any]:
    keys = ("device", "simulated", "simulated_chip", "origin", "cuptiprof_version", "host")
    return {k: result.metadata[k] for k in keys if k in result.metadata}


def _header(result: Result) -> tuple[str, ...]:
    m = result.metadata
    lines = []
    device = str(m.get("device", ""))
    if result.simulated:
        chip = f"SIMULATED device (chip {m.get('simulated_chip') or 'unknown'})"
        if device.startswith("replay:"):
            lines.append(f"{chip}, a replay of {device.partition(':')[2]}: not measured on a GPU")
        elif device.startswith("import:"):
            lines.append(f"{chip}, imported from {device.partition(':')[2]}: not measured on a GPU")
        else:
            lines += [f"{chip}, PyTorch operators by model: not measured on a GPU", _TIMES_OF_A_MODEL]
    elif device.startswith("import:"):
        lines.append(f"imported from {device.partition(':')[2]}")
    names = sorted(set(result.devices["name"])) if len(result.devices) else []
    if names:
        lines.append("GPU: " + ", ".join(str(n) for n in names))
    untimed = sum(int((result.tables[t]["end"] == 0).sum()) for t in ("kernels", "memcpys", "memsets"))
    if untimed:
        lines.append(f"{untimed:,} kernels, copies and sets have no times and are left out of every sum of time")
    if m.get("note"):
        lines.append(str(m["note"]))
    if line := coverage_line(m):
        lines.append(line)
    plan = CounterRecord.of(m)
    if plan is not None:
        lines += plan.lines(run_is_simulated=result.simulated)
    return tuple(lines)
