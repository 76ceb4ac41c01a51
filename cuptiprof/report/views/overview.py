"""The first look at a run: how long, how busy the GPU was and with what, why it was idle, what took longest, what was lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.gpu_work import times_by_code
from cuptiprof.analysis.quantiles import Spread, spread_by_group
from cuptiprof.analysis.region_tree import region_tree
from cuptiprof.analysis.step_spans import host_steps
from cuptiprof.analysis.timeline import GpuTime, gpu_time, recorded_span
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, nothing
from cuptiprof.text.names import display_name

_ROWS = 6  # of kernels and of regions where no limit says otherwise

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
    "Wall: from the first to the last thing recorded; shares are of it, for several GPUs of all of theirs.",
    "Idle by what the host did meanwhile. Avg to Max: of one step, launch or call.",
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

    The wall time is that from the first to the last thing recorded. ``limit``: rows of kernels, and of regions.
    """
    span = recorded_span(result)
    if span is None:
        return View(
            _COLUMNS,
            {c.key: [] for c in _COLUMNS},
            notes={"": "Nothing was recorded."},
            block_key="block",
            depth_key="depth",
        )
    wall = span[1] - span[0]
    gpus = gpu_time(result, span)
    rows = _Rows(wall * max(len(gpus), 1))
    _run(rows, result, wall)
    for gpu in gpus:
        _gpu(rows, gpu, wall, "GPU" if len(gpus) == 1 else f"GPU {gpu.device}")
    more = _kernels(rows, result, demangle, _ROWS if limit is None else limit)
    more += _regions(rows, result, _ROWS if limit is None else limit)
    return View(
        columns=_COLUMNS,
        data=rows.data,
        footers=(*more, *_LEGEND, *(() if result.losses else ("Nothing was lost.",))),
        notes={} if gpus else {"GPU": nothing("GPU activities", result.losses["filter_rejected"])},
        block_key="block",
        depth_key="depth",
        facts={"wall_ns": wall, "gpus": len(gpus)},
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


def _gpu(rows: _Rows, gpu: GpuTime, wall: int, block: str) -> None:
    rows.add(block, "busy", gpu.busy)
    rows.add(block, "compute", gpu.compute, 1)
    rows.add(block, "copies and sets", gpu.copying, 1)
    rows.add(block, "communication", gpu.communication, 1)
    if gpu.communication:
        rows.add(block, "of it beside compute", gpu.hidden, 2)
    rows.add(block, "idle", wall - gpu.busy)
    rows.add(block, "before the first work", gpu.before, 1)
    if gpu.waited is None or gpu.called is None or gpu.elsewhere is None:
        rows.add(block, "why is not known: no API calls", wall - gpu.busy - gpu.before - gpu.after, 1)
    else:
        rows.add(block, "host waited for the GPU", gpu.waited, 1)
        rows.add(block, "host in other CUDA calls", gpu.called, 1)
        rows.add(block, "host elsewhere", gpu.elsewhere, 1)
    rows.add(block, "after the last work", gpu.after, 1)


def _kernels(rows: _Rows, result: Result, demangle: bool, limit: int) -> list[str]:
    """The kernels that took longest, all GPUs together."""
    kernels = result.kernels
    codes = kernels.codes("name")
    by_name = times_by_code(kernels, codes, lambda code: display_name(kernels.strings[code], demangle))
    order = sorted(by_name, key=lambda name: (-by_name[name].total, name))
    used, which = renumbered(codes)
    shown = [display_name(kernels.strings[code], demangle) for code in used.tolist()]
    for name in order[:limit]:
        mine = np.array([other == name for other in shown])[which]
        values = kernels["end"][mine] - kernels["start"][mine]
        spread = spread_by_group(np.zeros(len(values), np.int64), values, 1)
        rows.add("Top kernels", name, by_name[name].total, count=len(values), **_statistics(spread, 0))
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
