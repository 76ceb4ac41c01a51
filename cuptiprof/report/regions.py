"""The region tree: host time, and the GPU time of what was launched inside."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuptiprof import _core
from cuptiprof.report.intervals import length, union
from cuptiprof.report.model import Block, Column
from cuptiprof.report.names import display_name
from cuptiprof.result import Result
from cuptiprof.tables import Array

COLUMNS = [
    Column("percent", "GPU(%)", "percent"),
    Column("gpu_total_ns", "GPU total", "time"),
    Column("gpu_self_ns", "GPU self", "time"),
    Column("gpu_busy_ns", "GPU busy", "time"),
    Column("gpu_idle_ns", "GPU idle", "time"),
    Column("host_ns", "Host", "time"),
    Column("calls", "Calls", "count"),
    Column("kernels", "Kernels", "count"),
    Column("copies", "Copies", "count"),
    Column("flops_rate", "FLOP/s", "number"),
    Column("region", "Region"),
]

_STEP = re.compile(r"^ProfilerStep#\d+")
NO_REGION = "(no region)"


@dataclass
class _Node:
    name: str
    depth: int
    calls: int = 0
    host_ns: int = 0
    self_ns: int = 0
    kernels: int = 0
    copies: int = 0
    flops: float = 0.0
    intervals: list[Array] = field(default_factory=list)  # of everything launched in it or below
    spans: list[tuple[int, int]] = field(default_factory=list)
    children: dict[str, _Node] = field(default_factory=dict)

    def child(self, name: str) -> _Node:
        return self.children.setdefault(name, _Node(name, self.depth + 1))

    def total_ns(self) -> int:
        return self.self_ns + sum(c.total_ns() for c in self.children.values())

    def count(self, what: str) -> int:
        return int(getattr(self, what)) + sum(c.count(what) for c in self.children.values())

    def all_intervals(self) -> list[Array]:
        return self.intervals + [i for c in self.children.values() for i in c.all_intervals()]


def blocks(result: Result, *, demangle: bool = True, limit: int | None = None) -> list[Block]:
    """One block. GPU total adds up kernels, copies and sets (overlapping ones count twice); busy is the time any of them
    ran; idle is host time of the region during which nothing that it launched ran. ``ProfilerStep#N`` is one row."""
    root = _Node("", -1)
    nodes: dict[str, _Node] = {}

    def node_of(path: str) -> _Node:
        if path not in nodes:
            node = root
            for name in _core.split_region_path(path) if path else [NO_REGION]:
                node = node.child(_STEP.sub("ProfilerStep#*", name))
            nodes[path] = node
        return nodes[path]

    regions = result.regions
    spans = zip(regions["path"], regions["start"].tolist(), regions["end"].tolist(), regions["flops"], strict=True)
    for path, start, end, flops in spans:
        node = node_of(path)
        node.calls += 1
        node.host_ns += end - start
        node.spans.append((start, end))
        node.flops += 0.0 if np.isnan(flops) else float(flops)
    for name in ("kernels", "memcpys", "memsets"):
        t = result.tables[name]
        codes, starts, ends = t.codes("region"), t["start"], t["end"]
        for code in np.unique(codes):
            mask = codes == code
            node = node_of(t.strings[int(code)])
            node.self_ns += int((ends[mask] - starts[mask]).sum())
            node.intervals.append(np.stack([starts[mask], ends[mask]], axis=1))
            if name == "kernels":
                node.kernels += int(mask.sum())
            else:
                node.copies += int(mask.sum())
    total = sum(c.total_ns() for c in root.children.values())
    rows: list[dict[str, Any]] = []

    def walk(node: _Node) -> None:
        rows.append(_row(node, total))
        for child in sorted(node.children.values(), key=lambda c: -c.total_ns()):
            walk(child)

    for child in sorted(root.children.values(), key=lambda c: -c.total_ns()):
        walk(child)
    note = f"... and {len(rows) - limit} more" if limit is not None and len(rows) > limit else ""
    return [Block("", COLUMNS, rows[:limit], indent_key="depth", note=note)]


def _row(node: _Node, total: int) -> dict[str, Any]:
    intervals = node.all_intervals()
    busy = union(np.concatenate(intervals)) if intervals else np.empty((0, 2), np.int64)
    gpu = node.total_ns()
    host = union(np.array(node.spans, np.int64).reshape(-1, 2))
    inside = length(host) - (length(union(np.concatenate([host, busy]))) - length(busy)) if len(host) else 0
    return {
        "percent": 100.0 * gpu / total if total else 0.0,
        "gpu_total_ns": gpu,
        "gpu_self_ns": node.self_ns,
        "gpu_busy_ns": length(busy),
        "gpu_idle_ns": length(host) - inside if len(host) else None,
        "host_ns": node.host_ns if node.calls else None,
        "calls": node.calls or None,
        "kernels": node.count("kernels"),
        "copies": node.count("copies"),
        "flops_rate": node.flops * 1e9 / length(busy) if node.flops and length(busy) else None,
        "depth": node.depth,
        "region": display_name(node.name, False),
    }
