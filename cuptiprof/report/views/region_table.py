"""The region tree: host time, GPU time, and how busy the GPU was while the host was in a region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, covered_before, covered_by_group, sum_by_group, union
from cuptiprof.analysis.arrays.quantiles import or_none, spread_by_group
from cuptiprof.analysis.trees.region_tree import NO_REGION, WORK_TABLES, RegionTree, region_tree
from cuptiprof.analysis.work.gpu_work import traced_graphs
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.report.model import Column, View, left_out, nothing

_COLUMNS = (
    Column("percent", "GPU(%)", "percent", min_width=7),
    Column("gpu_total_ns", "GPU total", "duration", min_width=8),
    Column("gpu_self_ns", "GPU self", "duration", min_width=8, rank=10),
    Column("gpu_busy_ns", "GPU busy", "duration", min_width=8, rank=11),
    Column("gpu_idle_ns", "GPU idle", "duration", min_width=8, rank=3),
    Column("gpu_idle_percent", "Idle(%)", "percent", min_width=7, rank=4),
    Column("calls", "Calls", "count", min_width=6),
    Column("host_ns", "Host", "duration", min_width=8, rank=12),
    Column("host_avg_ns", "Host avg", "duration", min_width=8, rank=2),
    Column("host_min_ns", "Host min", "duration", min_width=8, rank=8),
    Column("host_median_ns", "Host med", "duration", min_width=8),
    Column("host_p95_ns", "Host P95", "duration", min_width=8, rank=1),
    Column("host_max_ns", "Host max", "duration", min_width=8, rank=7),
    Column("kernels", "Kernels", "count", rank=5),
    Column("kernels_self", "Kernels self", "count", human=False),
    Column("copies", "Copies", "count", rank=9),
    Column("copy_bytes", "Copied", "bytes", human=False),
    Column("flops", "FLOP", "flop", human=False),
    Column("flops_rate", "FLOP/s", "flop_rate", rank=6),
    Column("bytes", "Bytes", "bytes", human=False),
    Column("bytes_rate", "Bytes/s", "byte_rate", rank=6),
    Column("depth", "Depth", "count", human=False),
    Column("path", "Path", "label", human=False),
    Column("region", "Region", "text"),
)

_LEGEND = (
    "GPU total: time of the kernels, copies and sets launched in the region and in those nested in it; self: without those.",
    "GPU busy: time in which any of them ran, summed over GPUs. GPU idle: time that the host was in it while no GPU ran.",
    "Host: time that the host was in it, all calls; Host avg, min, med(ian), P95, max: of one call.",
)


@dataclass(frozen=True)
class _Work:
    """GPU work by node of the tree, times in ns."""

    node: Array
    start: Int64
    end: Int64
    device: Array


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a region path, heaviest first, nested regions below their parent.

    ``gpu_total_ns`` adds up durations (work that overlaps counts twice), ``gpu_busy_ns`` does not. ``flops_rate`` and
    ``bytes_rate`` are what the user declared for the region over its busy time, if every instance declared it.
    """
    del demangle  # names of regions are not mangled
    tree = region_tree(result)
    work = _work(result, tree, *WORK_TABLES)
    own = sum_by_group(work.node, work.end, len(tree), work.start)
    total = tree.subtree_sum(own)
    whole = int(own.sum())
    busy = _busy(work, tree)
    kernels = np.bincount(tree.nodes(result.kernels.codes("region")), minlength=len(tree))
    copies = np.concatenate([tree.nodes(result.tables[name].codes("region")) for name in ("memcpys", "memsets")])
    moved = np.concatenate([result.memcpys["bytes"], result.memsets["bytes"]]).astype(np.int64)
    columns: dict[str, list[Any]] = {
        "percent": [100.0 * value / whole if whole else 0.0 for value in total.tolist()],
        "gpu_total_ns": total.tolist(),
        "gpu_self_ns": own.tolist(),
        "gpu_busy_ns": busy.tolist(),
        "kernels": tree.subtree_sum(kernels).tolist(),
        "kernels_self": kernels.tolist(),
        "copies": tree.subtree_sum(np.bincount(copies, minlength=len(tree))).tolist(),
        "copy_bytes": tree.subtree_sum(sum_by_group(copies, moved, len(tree))).tolist(),
        "depth": tree.depth.tolist(),
        "path": ["/".join(path) if path != (NO_REGION,) else "" for path in tree.paths],
        "region": tree.names,
        **_host(result, tree, work),
    }
    for given, rate in (("flops", "flops_rate"), ("bytes", "bytes_rate")):
        columns[rate] = [
            amount * 1e9 / time if amount is not None and time else None
            for amount, time in zip(columns[given], busy.tolist(), strict=True)
        ]
    order = tree.preorder(total)
    shown = order[:limit]
    data = {key: [values[node] for node in shown] for key, values in columns.items()}
    hidden = {key for key in ("flops_rate", "bytes_rate") if all(value is None for value in data[key])}
    left = int(np.count_nonzero(result.regions["is_open"]))
    still_open = (f"{left} regions had not been left when the session stopped; they end there.",) if left else ()
    return View(
        columns=tuple(replace(column, human=False) if column.key in hidden else column for column in _COLUMNS),
        data=data,
        footers=(*left_out(len(order), len(shown), "regions"), *still_open, *(_LEGEND if shown else ())),
        notes={"": nothing("regions and no GPU activities", result.losses["filter_rejected"])},
        depth_key="depth",
    )


def _work(result: Result, tree: RegionTree, *names: str) -> _Work:
    """By start, so that nothing below sorts again."""
    tables = [result.tables[name] for name in names if len(result.tables[name])] or [result.kernels]
    tables = [t.where(traced_graphs(result)) if t.name == "graph_launches" else t for t in tables]
    start, end, device = (np.concatenate([table[column] for table in tables]) for column in ("start", "end", "device"))
    node = np.concatenate([tree.nodes(table.codes("region")) for table in tables])
    if (start[1:] >= start[:-1]).all():
        return _Work(node, start, end, device)
    order = np.argsort(start, kind="stable")
    return _Work(node[order], start[order], end[order], device[order])


def _busy(work: _Work, tree: RegionTree) -> Int64:
    """Union of the work of each node and all below it, GPU by GPU."""
    n = len(tree)
    busy = np.zeros(n, np.int64)
    devices, device = renumbered(work.device)
    count = max(len(devices), 1)
    for ancestor in tree.ancestors():
        owner = ancestor[work.node]
        rows = slice(None) if (owner >= 0).all() else np.flatnonzero(owner >= 0)
        group = owner[rows] if count == 1 else owner[rows] * count + device[rows]
        covered = covered_by_group(group, work.start[rows], work.end[rows], n * count)
        busy += covered.reshape(n, count).sum(axis=1)
    return busy


def _host(result: Result, tree: RegionTree, work: _Work) -> dict[str, list[Any]]:
    """What the regions table says: calls, host time, idle time, flops and bytes declared; None for a region without rows."""
    n = len(tree)
    regions = result.regions
    node = tree.nodes(regions.codes("path"))
    calls = np.bincount(node, minlength=n)
    spans = union(node, regions["start"], regions["end"])
    gpu = union(np.zeros(len(work.start), np.int8), work.start, work.end)
    running = covered_before(gpu.start, gpu.end, spans.end) - covered_before(gpu.start, gpu.end, spans.start)
    idle = sum_by_group(spans.group, spans.end - spans.start - running, n)
    span = spans.total_by_group(n)
    host = spread_by_group(node, regions["end"] - regions["start"], n)
    out: dict[str, list[Any]] = {
        "calls": [count or None for count in calls.tolist()],
        "host_ns": or_none(host.total, calls),
        "host_avg_ns": or_none(host.mean, calls),
        "host_min_ns": or_none(host.minimum, calls),
        "host_median_ns": or_none(host.median, calls),
        "host_p95_ns": or_none(host.p95, calls),
        "host_max_ns": or_none(host.maximum, calls),
        "gpu_idle_ns": [],
        "gpu_idle_percent": [],
    }
    for count, free, wide in zip(calls.tolist(), idle.tolist(), span.tolist(), strict=True):
        out["gpu_idle_ns"].append(free if count else None)
        out["gpu_idle_percent"].append(100.0 * free / wide if wide else None)
    for key in ("flops", "bytes"):
        given = regions[key]
        has = np.isfinite(given)
        # A rate needs the work of all instances: with some of it unknown, the sum is no sum.
        complete = (np.bincount(node[has], minlength=n) == calls) & (calls > 0)
        sums = np.bincount(node[has], weights=given[has], minlength=n)
        out[key] = [v if known else None for v, known in zip(sums.tolist(), complete.tolist(), strict=True)]
    return out
