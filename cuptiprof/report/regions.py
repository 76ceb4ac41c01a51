"""The region tree: host time, GPU time, and how busy the GPU was while the host was in a region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cuptiprof.report import heading
from cuptiprof.report.activities import traced_graphs
from cuptiprof.report.aggregate import Int64, covered_before, sum_by_group, union
from cuptiprof.report.model import Column, TableModel
from cuptiprof.report.region_tree import RegionTree, region_tree
from cuptiprof.report.view import Options, left_out

if TYPE_CHECKING:
    from cuptiprof.result import Result

NO_REGION = "(no region)"

_COLUMNS = (
    Column("name", "Region", "text", min_width=24),
    Column("path", "Path", "label", human=False),
    Column("depth", "Depth", "count", human=False),
    Column("calls", "Calls", "count", min_width=6),
    Column("host_ns", "Host", "duration", min_width=8),
    Column("gpu_self_ns", "GPU self", "duration", min_width=8),
    Column("gpu_total_ns", "GPU total", "duration", min_width=8),
    Column("share_percent", "Share", "percent", min_width=7),
    Column("gpu_busy_ns", "GPU busy", "duration", min_width=8),
    Column("idle_ns", "GPU idle", "duration", min_width=8),
    Column("idle_percent", "Idle(%)", "percent", min_width=7),
    Column("kernels_self", "Kernels self", "count", human=False),
    Column("kernels", "Kernels", "count", min_width=7),
    Column("copies", "Copies", "count", min_width=6),
    Column("copy_ns", "Copy time", "duration", human=False),
    Column("copy_bytes", "Copied", "bytes", human=False),
    Column("flops", "FLOP", "flop", human=False),
    Column("flops_per_second", "FLOP/s", "flop_rate"),
    Column("bytes", "Bytes", "bytes", human=False),
    Column("bytes_per_second", "Bytes/s", "byte_rate"),
)

_LEGEND = (
    "Host: sum over the calls. GPU self, total: sum of kernel times launched in the region itself, and with those nested in it.",
    "Share: of all kernel time. GPU busy: time with at least one of its kernels running, summed over GPUs.",
    "GPU idle: time inside the region's host span in which no GPU was doing anything.",
)


@dataclass(frozen=True)
class _Work:
    """GPU work by region: node -1 is no region."""

    node: Int64
    start: Int64
    end: Int64
    device: Int64


class RegionsView:
    """One row a region path, nested regions below their parent; last, what ran outside of every region."""

    name = "regions"
    help = "tree of regions with host time, GPU time, kernels, copies and idle time"

    def build(self, result: Result, options: Options) -> TableModel:
        tree = region_tree(result)
        data = _columns(result, tree)
        total = len(data["name"])
        if options.limit is not None:
            data = {key: values[: options.limit] for key, values in data.items()}
        empty = {
            key
            for key in ("flops_per_second", "bytes_per_second")
            if all(value is None for value in data[key])
        }
        still_open = int(np.count_nonzero(result.tables["regions"]["is_open"]))
        left_open = (f"{still_open} regions had not been left when the session stopped; they end there.",)
        return TableModel(
            view=self.name,
            title="Regions",
            columns=tuple(
                replace(column, human=False) if column.key in empty else column for column in _COLUMNS
            ),
            data=data,
            preamble=heading.preamble(result, "Regions:"),
            footers=(
                *left_out(total, len(data["name"]), "regions"),
                *(left_open if still_open else ()),
                *_LEGEND,
            ),
            notes={"": "No regions and no GPU work were recorded."},
            losses=heading.losses(result),
            losses_line=heading.losses_line(result.losses),
            facts=heading.facts(result),
            depth_key="depth",
            prefix=heading.prefix(result),
        )


def _work(result: Result, tree: RegionTree, *names: str) -> _Work:
    tables = [result.tables[name] for name in names]
    tables = [table.where(traced_graphs(result)) if table.name == "graph_launches" else table for table in tables]
    return _Work(
        np.concatenate([tree.nodes(table.codes("region")) for table in tables]),
        *(
            np.concatenate([table[column] for table in tables]).astype(np.int64)
            for column in ("start", "end", "device")
        ),
    )


def _columns(result: Result, tree: RegionTree) -> dict[str, list[Any]]:
    n = len(tree.paths)
    # Group n is "no region": node -1 moved to the end.
    kernels = _work(result, tree, "kernels", "graph_launches")
    node = np.where(kernels.node < 0, n, kernels.node)
    gpu_self = sum_by_group(node, kernels.end - kernels.start, n + 1)
    recorded = _work(result, tree, "kernels")
    kernels_self = np.bincount(np.where(recorded.node < 0, n, recorded.node), minlength=n + 1)
    copies = _work(result, tree, "memcpys")
    copy_node = np.where(copies.node < 0, n, copies.node)
    copy_count = np.bincount(copy_node, minlength=n + 1)
    copy_time = sum_by_group(copy_node, copies.end - copies.start, n + 1)
    copy_bytes = sum_by_group(copy_node, result.tables["memcpys"]["bytes"], n + 1)

    def total(own: Int64) -> list[int]:
        values: list[int] = [*tree.subtree_sum(own[:n]).tolist(), int(own[n])]
        return values

    busy = _busy(kernels, tree)
    host = _host(result, tree)
    gpu_total = total(gpu_self)
    whole = int(gpu_self.sum())
    data: dict[str, list[Any]] = {
        "name": [*tree.names, NO_REGION],
        "path": [*tree.paths, ""],
        "depth": [*tree.depth.tolist(), 0],
        "gpu_self_ns": gpu_self.tolist(),
        "gpu_total_ns": gpu_total,
        "share_percent": [100.0 * value / whole if whole else 0.0 for value in gpu_total],
        "gpu_busy_ns": busy.tolist(),
        "kernels_self": kernels_self.tolist(),
        "kernels": total(kernels_self),
        "copies": total(copy_count),
        "copy_ns": total(copy_time),
        "copy_bytes": total(copy_bytes),
        **host,
    }
    for given, rate in (("flops", "flops_per_second"), ("bytes", "bytes_per_second")):
        data[rate] = [
            amount * 1e9 / time if amount is not None and time else None
            for amount, time in zip(data[given], busy.tolist(), strict=True)
        ]
    if not any(data[key][n] for key in ("kernels", "copies", "gpu_self_ns")):
        data = {key: values[:n] for key, values in data.items()}
    return data


def _busy(work: _Work, tree: RegionTree) -> Int64:
    """Union of the kernels' times of each subtree, device by device; last, that of no region."""
    n = len(tree.paths)
    busy = np.zeros(n + 1, np.int64)
    devices, device = np.unique(work.device, return_inverse=True)
    count = max(len(devices), 1)
    device = device.reshape(-1)
    outside = work.node < 0
    covered = union(device[outside], work.start[outside], work.end[outside])
    busy[n] = covered.total_by_group(count).sum()
    rows = np.flatnonzero(~outside)
    depth = tree.depth[work.node[rows]]
    for level in range(int(depth.max()) + 1 if len(depth) else 0):
        deep = rows[depth >= level]
        owner = tree.ancestor_at(level)[work.node[deep]]
        covered = union(owner * count + device[deep], work.start[deep], work.end[deep])
        busy[:n] += covered.total_by_group(n * count).reshape(n, count).sum(axis=1)
    return busy


def _host(result: Result, tree: RegionTree) -> dict[str, list[Any]]:
    """What the regions table says: calls, host time, idle time in the host span, flops and bytes given."""
    n = len(tree.paths)
    regions = result.tables["regions"]
    node = tree.nodes(regions.codes("path"))
    calls = np.bincount(node, minlength=n)
    spans = union(node, regions["start"], regions["end"])
    span = spans.total_by_group(n)
    everything = _work(result, tree, "kernels", "memcpys", "memsets", "graph_launches")
    gpu = union(np.zeros(len(everything.start), np.int64), everything.start, everything.end)
    running = covered_before(gpu.start, gpu.end, spans.end) - covered_before(gpu.start, gpu.end, spans.start)
    idle = span - sum_by_group(spans.group, running, n)
    entered = [bool(count) for count in calls.tolist()]
    data: dict[str, list[Any]] = {
        "calls": calls.tolist(),
        "host_ns": sum_by_group(node, regions["end"] - regions["start"], n).tolist(),
        "idle_ns": idle.tolist(),
        "idle_percent": [
            100.0 * part / whole if whole else None
            for part, whole in zip(idle.tolist(), span.tolist(), strict=True)
        ],
    }
    data = {key: [value if known else None for value, known in zip(values, entered, strict=True)] for key, values in data.items()}
    for key in ("flops", "bytes"):
        given = regions[key]
        has = np.isfinite(given)
        # A rate needs the work of all instances: with some of it unknown, the sum is no sum.
        complete = (np.bincount(node[has], minlength=n) == calls) & (calls > 0)
        sums = np.bincount(node[has], weights=given[has], minlength=n)
        data[key] = [value if known else None for value, known in zip(sums.tolist(), complete.tolist(), strict=True)]
    return {key: [*values, None] for key, values in data.items()}
