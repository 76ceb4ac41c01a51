"""The first look at a run: how long, how busy the GPU was and with what, why it was idle, what took longest, what to try, what was
lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from cuptiprof.analysis.advice.advise import advise_on
from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.suggestion import Advice
from cuptiprof.analysis.arrays.aggregate import sum_by_group
from cuptiprof.analysis.arrays.quantiles import Spread, spread_by_group
from cuptiprof.analysis.operator_work.operator_stats import operator_stats
from cuptiprof.analysis.thresholds import KERNEL_WAIT
from cuptiprof.analysis.training_steps.step_outliers import step_outliers
from cuptiprof.analysis.training_steps.step_spans import host_steps
from cuptiprof.analysis.trees.region_tree import region_tree
from cuptiprof.analysis.utilization.gpu_idle import WORK_TABLES, GpuIdle
from cuptiprof.analysis.utilization.gpu_use import GpuUse, gpu_use
from cuptiprof.analysis.utilization.timeline import GpuTime, gpu_time
from cuptiprof.data.coverage import time_unobserved
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, nothing
from cuptiprof.report.views.advice_table import sentence
from cuptiprof.text.units import format_percent

_ROWS = 5  # of operators, of kernels and of regions where no limit says otherwise
_STEPS = 3  # that stand out
_ADVICE = 3  # sentences

_COLUMNS = (
    Column("block", "Block", "label"),
    Column("depth", "Depth", "count", human=False),
    Column("time_ns", "Time", "duration", min_width=8),
    Column("percent", "Of wall", "percent"),
    Column("count", "Count", "count"),
    Column("avg_ns", "Avg", "duration", rank=2),
    Column("min_ns", "Min", "duration", rank=5),
    Column("median_ns", "Median", "duration", rank=1),
    Column("p95_ns", "P95", "duration", rank=3),
    Column("max_ns", "Max", "duration", rank=4),
    Column("name", "Name", "text", is_function=True),
)
_LEGEND = (
    "Wall: from the first to the last thing recorded; shares are of it, for several GPUs of all of theirs. Avg to Max: of one.",
    "Idle, host: work launched only after the GPU had run dry; synchronisation: because the host had waited for the GPU; kernel wait: launched in "
    f"time, less than {KERNEL_WAIT.value / 1000:.0f} us; other: launched in time.",
)
_STATISTICS = ("avg_ns", "min_ns", "median_ns", "p95_ns", "max_ns")


class _Rows:
    """Rows of the table; percentages are of the wall time of all GPUs."""

    def __init__(self, whole: int) -> None:
        self.data: dict[str, list[Any]] = {column.key: [] for column in _COLUMNS}
        self._whole = whole

    def add(self, block: str, name: str, time: int, depth: int = 0, *, share: bool = True, **more: Any) -> None:
        percent = 100.0 * time / self._whole if share and self._whole else None
        row = {"block": block, "name": name, "depth": depth, "time_ns": time, "percent": percent, **more}
        for key, column in self.data.items():
            column.append(row.get(key))


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """Blocks of rows: the run and its steps; each GPU's time; its work by kind; the kernels and the regions that took longest.

    The wall time is that from the first to the last thing recorded. ``limit``: rows of operators, of
    kernels, and of regions.
    """
    evidence = Evidence(result, demangle)
    span = evidence.span
    if span is None:
        return View(
            _COLUMNS,
            {c.key: [] for c in _COLUMNS},
            notes={"": "Nothing was recorded."},
            block_key="block",
            depth_key="depth",
        )
    gpus = gpu_time(evidence.work, evidence.idle)
    rows = _Rows(evidence.wall * max(len(gpus), 1))
    shown = _ROWS if limit is None else limit
    _run(rows, result, evidence.wall)
    for gpu, idle in zip(gpus, evidence.idle, strict=True):
        block = "GPU" if len(gpus) == 1 else f"GPU {gpu.device}"
        _gpu(rows, gpu, idle, span, len(result.api_calls) > 0, block, result.metadata)
    more = [*_operators(rows, result, shown), *_kernels(rows, evidence, shown), *_regions(rows, result, shown)]
    used = gpu_use(result) if gpus else []
    advice = advise_on(evidence, _ADVICE)
    return View(
        columns=_COLUMNS,
        data=rows.data,
        footers=(
            *map(_use_line, used),
            *_advice(advice),
            *more,
            *_LEGEND,
            *_filtered(result.losses["filter_rejected"]),
            *(() if result.losses else ("Nothing was lost.",)),
        ),
        notes={} if gpus else {"GPU": nothing("GPU activities", result.losses["filter_rejected"])},
        block_key="block",
        depth_key="depth",
        facts={"wall_ns": evidence.wall, "gpus": len(gpus), "use": [asdict(one) for one in used]},
    )


def _run(rows: _Rows, result: Result, wall: int) -> None:
    rows.add("Run", "wall", wall, share=False)
    start, stop = (result.metadata.get(f"{what}_time_ns") for what in ("start", "stop"))
    recorded = str(result.metadata.get("device", "")).startswith(("replay:", "import:"))  # by another session
    if isinstance(start, int) and isinstance(stop, int) and stop > start and not recorded:
        rows.add("Run", "session", stop - start, share=False)
    steps = host_steps(result)
    if len(steps):
        spread = spread_by_group(np.zeros(len(steps), np.int64), steps.end - steps.start, 1)
        rows.add("Run", "steps", int(spread.total[0]), share=False, count=len(steps), **_statistics(spread, 0))
        took = steps.end - steps.start
        for i in step_outliers(took)[0][:_STEPS].tolist():
            rows.add("Run", f"step {steps.name[i]} stands out", int(took[i]), 1, share=False)


def _gpu(
    rows: _Rows,
    gpu: GpuTime,
    idle: GpuIdle,
    span: tuple[int, int],
    calls: bool,
    block: str,
    metadata: Mapping[str, Any],
) -> None:
    rows.add(block, "busy", gpu.busy)
    rows.add(block, "compute", gpu.compute, 1)
    rows.add(block, "copies and sets", gpu.copying, 1)
    if gpu.copying:
        rows.add(block, "of it beside compute", gpu.hidden_copying, 2)
    rows.add(block, "communication", gpu.communication, 1)
    if gpu.communication:
        rows.add(block, "of it beside compute", gpu.hidden, 2)
    before, after = time_unobserved(metadata, np.array([span[0], gpu.last]), np.array([gpu.first, span[1]])).tolist()
    unobserved = idle.unobserved + before + after
    if unobserved:
        rows.add(block, "not observed", unobserved)
    rows.add(block, "idle", span[1] - span[0] - gpu.busy - unobserved)
    rows.add(block, "before the first work", gpu.first - span[0] - before, 1)
    if calls:
        for cause, time in idle.totals().items():
            rows.add(block, cause, time, 1)
    else:
        rows.add(block, "why is not known: no API calls", int((idle.end - idle.start).sum()), 1)
    rows.add(block, "after the last work", span[1] - gpu.last - after, 1)


def _use_line(use: GpuUse) -> str:
    """The three figures of TensorBoard's plugin; what was measured beside what is estimated."""
    said = [
        f"{what} {format_percent(value)}{by}"
        for what, value, by in (
            ("utilisation", use.utilisation_pct, ""),
            ("SM efficiency", use.sm_efficiency_pct, " (estimated)"),
            ("SM efficiency", use.measured_sm_efficiency_pct, " (measured, of counted kernels)"),
            ("occupancy", use.occupancy_pct, " (estimated)"),
            ("occupancy", use.measured_occupancy_pct, " (measured, of counted kernels)"),
        )
        if value is not None
    ]
    return f"GPU {use.device}: {', '.join(said) or 'no kernels'}; from the first step to the last."


def _filtered(rejected: int) -> tuple[str, ...]:
    return (
        (f"The filter left out {rejected:,} kernels: where the GPU is idle here, they may have run.",)
        if rejected
        else ()
    )


def _advice(advice: Advice) -> list[str]:
    said = [f"{i}. {one}" for i, one in enumerate((sentence(of, advice) for of in advice.findings), 1)]
    if not said:
        return []
    return [f"What to try first ({advice.count} in all: cuptiprof advise):", *said]


def _operators(rows: _Rows, result: Result, limit: int) -> list[str]:
    """The operators whose own work took longest on the GPU; where none had any, on the host."""
    if not len(result.operators) and not any(result.tables[name].codes("operator").any() for name in WORK_TABLES[:3]):
        return []
    stats = operator_stats(result)
    own, where = stats.device_self, "GPU"
    if not own.any() and stats.host_self is not None:
        own, where = stats.host_self, "host"
    order = [i for i in np.lexsort((np.arange(len(stats)), -own)).tolist() if own[i]]
    for i in order[:limit]:
        time = int(own[i])
        calls = int(stats.calls[i]) if stats.calls is not None else None
        average = time / calls if calls else None
        rows.add(f"Top operators ({where} time, own)", stats.name[i], time, count=calls, avg_ns=average)
    left = len(order) - limit
    return [f"... and {left} more operators: --view operators"] if left > 0 else []


def _kernels(rows: _Rows, evidence: Evidence, limit: int) -> list[str]:
    """The kernels that took longest, all GPUs together."""
    kernels, names = evidence.result.kernels, evidence.names
    lasted = kernels["end"] - kernels["start"] if evidence.talk.any() else evidence.kernel_ns
    total = sum_by_group(names.ids, lasted, len(names.names)) if evidence.talk.any() else evidence.time_by_name
    order = sorted(range(len(total)), key=lambda i: (-int(total[i]), names.names[i]))
    for number in order[:limit]:
        values = lasted[names.ids == number]
        spread = spread_by_group(np.zeros(len(values), np.int64), values, 1)
        rows.add("Top kernels", names.names[number], int(total[number]), count=len(values), **_statistics(spread, 0))
    left = len(order) - limit
    return [f"... and {left} more kernels: --view summary"] if left > 0 else []


def _regions(rows: _Rows, result: Result, limit: int) -> list[str]:
    """The region tree by time of the host, nested ones below theirs."""
    if not len(result.regions):
        return []
    tree = region_tree(result)
    spread = spread_by_group(tree.nodes(result.regions.codes("path")), result.regions["duration"], len(tree))
    order = [node for node in tree.preorder(spread.total) if spread.count[node]]
    for node in order[:limit]:
        count = int(spread.count[node])
        rows.add("Regions (host time)", tree.names[node], int(spread.total[node]), int(tree.depth[node]), count=count,
                 **_statistics(spread, node))  # fmt: skip
    left = len(order) - limit
    return [f"... and {left} more regions: --view regions"] if left > 0 else []


def _statistics(spread: Spread, i: int) -> dict[str, Any]:
    columns = (spread.mean, spread.minimum, spread.median, spread.p95, spread.maximum)
    return {key: column[i].item() for key, column in zip(_STATISTICS, columns, strict=True)}
