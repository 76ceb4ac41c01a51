"""Work of CUDA graphs by the region that was open where it was captured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.trees.region_tree import NO_REGION, RegionTree, path_tree
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.report.model import Column, View, left_out, nothing

UNKNOWN = "(capture unknown)"

_COLUMNS = (
    Column("percent", "GPU(%)", "percent", min_width=7),
    Column("gpu_total_ns", "GPU total", "duration", min_width=8),
    Column("gpu_self_ns", "GPU self", "duration", min_width=8, rank=3),
    Column("nodes", "Nodes", "count", min_width=6, rank=1),
    Column("kernels", "Kernels", "count", min_width=8),
    Column("copies", "Copies", "count", rank=2),
    Column("depth", "Depth", "count", human=False),
    Column("path", "Path", "label", human=False),
    Column("region", "Captured in", "text"),
)

_LEGEND = (
    "GPU total: time of the kernels, copies and sets of CUDA graphs captured in the region and in those nested in it; self: "
    "without those.",
    "Nodes: different nodes of the graphs that ran; Kernels: times that those ran.",
)


@dataclass(frozen=True)
class _Work:
    """Work of graphs by node of the tree."""

    at: Array
    duration: Int64
    graph_node: Array
    is_kernel: Array


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a region path, heaviest first, nested regions below their parent. Work whose capture nobody saw (the graph is
    older than the session) is ``(capture unknown)``.
    """
    del demangle  # names of regions are not mangled
    tree, work = _by_capture(result)
    n = len(tree)
    own = sum_by_group(work.at, work.duration, n)
    total = tree.subtree_sum(own)
    whole = int(own.sum())
    first = np.unique(work.graph_node, return_index=True)[1]
    nodes, kernels, copies = (
        tree.subtree_sum(np.bincount(work.at[rows], minlength=n)).tolist()
        for rows in (first, work.is_kernel, ~work.is_kernel)
    )
    columns: dict[str, list[Any]] = {
        "percent": [100.0 * value / whole if whole else 0.0 for value in total.tolist()],
        "gpu_total_ns": total.tolist(),
        "gpu_self_ns": own.tolist(),
        "nodes": nodes,
        "kernels": kernels,
        "copies": copies,
        "depth": tree.depth.tolist(),
        "path": ["" if path[0] in (NO_REGION, UNKNOWN) else "/".join(path) for path in tree.paths],
        "region": tree.names,
    }
    order = [node for node in tree.preorder(total) if kernels[node] or copies[node]]
    shown = order[:limit]
    hidden = () if any(copies) else ("copies",)
    return View(
        columns=tuple(replace(column, human=False) if column.key in hidden else column for column in _COLUMNS),
        data={key: [values[node] for node in shown] for key, values in columns.items()},
        footers=(*left_out(len(order), len(shown), "regions"), *(_LEGEND if shown else ())),
        notes={"": nothing("work of CUDA graphs", result.losses["filter_rejected"])},
        depth_key="depth",
    )


def _by_capture(result: Result) -> tuple[RegionTree, _Work]:
    """The tree of capture regions with a last node for what is not known, and the work by its nodes."""
    tables = [result.tables[name] for name in ("kernels", "memcpys", "memsets")]
    tables = [table.where(table["graph_node_id"] != 0) for table in tables]
    known = [table["capture_known"] != 0 for table in tables]
    codes = [table.codes("capture_region") for table in tables]
    tree = path_tree(result.kernels.strings, [code[is_known] for code, is_known in zip(codes, known, strict=True)])
    at = [
        np.where(is_known, tree.nodes(code), len(tree)).astype(np.int64)
        for code, is_known in zip(codes, known, strict=True)
    ]
    tree = replace(
        tree,
        names=[*tree.names, UNKNOWN],
        paths=[*tree.paths, (UNKNOWN,)],
        parent=np.append(tree.parent, -1),
        depth=np.append(tree.depth, 0),
    )
    return tree, _Work(
        np.concatenate(at),
        np.concatenate([(table["end"] - table["start"]).astype(np.int64) for table in tables]),
        np.concatenate([table["graph_node_id"] for table in tables]),
        np.concatenate([np.full(len(table), table.name == "kernels") for table in tables]),
    )
