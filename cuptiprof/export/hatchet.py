"""Hatchet's literal (``GraphFrame.from_literal``): a tree of regions, operators, CUDA calls and GPU work with its times and counters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cuptiprof import _core
from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.trees.flame import work_stacks
from cuptiprof.analysis.trees.grouped_work import Float64, WorkSums, grouped_work, work_tables
from cuptiprof.analysis.trees.region_tree import path_tree
from cuptiprof.analysis.work.launch_calls import calls_of
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.output_stream import opened_output

_KINDS = ("kernel", "memcpy", "memset", "graph")
_INCLUSIVE = " (inc)"


@dataclass
class _Node:
    """A place of the tree; `groups` are those of the work that lies here itself."""

    name: str
    type: str
    children: dict[tuple[str, str], _Node] = field(default_factory=dict)
    groups: list[int] = field(default_factory=list)

    def child(self, name: str, type: str) -> _Node:
        found = self.children.get((name, type))
        if found is None:
            found = self.children[name, type] = _Node(name, type)
        return found


def write_literal(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """One root, whose times are those of the whole run. ``time`` is ns on the GPU of the node itself (kernels, copies and sets have it),
    ``time (inc)`` with all below it, ``launches`` likewise; counters are added up where they can be, others are means weighted by time."""
    del progress
    tables = work_tables(result)
    groups = _groups(result, tables)
    root = _tree(result, tables, groups)
    nodes, after = _preorder(root)
    columns = _columns(result, groups, nodes, after)
    with opened_output(path, compress) as out:
        for text in _json(nodes, columns):
            out.write(text.encode())


def _groups(result: Result, tables: list[Table]) -> WorkSums:
    api = result.tables["api_calls"]
    called = [calls_of(api, table["correlation_id"]) for table in tables]
    names = api.codes("name").astype(np.int64)
    call = [np.where(rows >= 0, names[rows] if len(names) else 0, 0) for rows in called]
    kind = [np.full(len(table), number) for number, table in enumerate(tables)]
    columns = {
        "outer": [_outer(table) for table in tables],
        "operator": work_stacks(result, tables, "operator").columns,
    }
    return grouped_work(result, tables, {**columns, "call": call, "kind": kind})


def _outer(table: Table) -> Int64:
    """Path of the region of each row; where there is none, of the NVTX ranges that were open."""
    region = table.codes("region").astype(np.int64)
    if "nvtx" not in table.column_names:
        return region
    return np.where(region == 0, table.codes("nvtx"), region).astype(np.int64)


def _tree(result: Result, tables: list[Table], groups: WorkSums) -> _Node:
    strings = result.kernels.strings
    regions = path_tree(strings, [groups.keys["outer"]], _core.split_region_path)
    operators = work_stacks(result, tables, "operator")
    root = _Node("GPU (simulated)" if result.simulated else "GPU", "run")
    keys = [groups.keys[name].tolist() for name in ("outer", "operator", "call", "kind", "work")]
    for group, (outer, operator, call, kind, work) in enumerate(zip(*keys, strict=True)):
        node = root
        if outer:
            for name in regions.paths[int(regions.node_of_code[outer])]:
                node = node.child(name, "region")
        for frame in operators.frames(operator):
            node = node.child(frame.function, "operator")
        if call:
            node = node.child(strings[call], "call")
        node.child(groups.names[work], _KINDS[kind]).groups.append(group)
    return root


def _preorder(root: _Node) -> tuple[list[tuple[_Node, int]], Int64]:
    """Nodes with their depths, parents first, and of each the number of the first that is not below it."""
    nodes: list[tuple[_Node, int]] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        nodes.append((node, depth))
        waiting += [(child, depth + 1) for child in reversed(node.children.values())]
    after = np.full(len(nodes), len(nodes), np.int64)
    around: list[int] = []
    for number, (_, depth) in enumerate(nodes):
        while len(around) > depth:
            after[around.pop()] = number
        around.append(number)
    return nodes, after


def _columns(
    result: Result, groups: WorkSums, nodes: list[tuple[_Node, int]], after: Int64
) -> dict[str, list[int] | list[float | None]]:
    """By name of the column a value a node; None: nothing was counted there."""
    node_of = np.zeros(len(groups), np.int64)
    for number, (node, _) in enumerate(nodes):
        node_of[node.groups] = number

    def own(values: Array) -> Array:
        out: Array = np.zeros(len(nodes), values.dtype)
        np.add.at(out, node_of, values)
        return out

    def inclusive(values: Array) -> Array:
        before: Array = np.zeros(len(nodes) + 1, values.dtype)
        np.cumsum(values, out=before[1:])
        out: Array = before[after] - before[:-1]
        return out

    columns: dict[str, list[int] | list[float | None]] = {}
    for name, whole in (("time", groups.ns), ("launches", groups.launches)):
        columns[name], columns[name + _INCLUSIVE] = own(whole).tolist(), inclusive(own(whole)).tolist()
    weight = np.maximum(result.kernels["end"] - result.kernels["start"], 1).astype(np.float64)
    for metric in result.counters:
        adds_up = result.counters.info(metric).adds_up
        values = groups.counted(result, metric, None if adds_up else weight)
        sums = own(np.nan_to_num(values))
        found = own(_counted_weight(result, groups, metric, weight))
        for name, of, by in ((metric, sums, found), (metric + _INCLUSIVE, inclusive(sums), inclusive(found))):
            shown = of if adds_up else np.divide(of, by, out=np.zeros(len(nodes)), where=by > 0)
            columns[name] = [
                value if known else None for value, known in zip(shown.tolist(), (by > 0).tolist(), strict=True)
            ]
    return columns


def _counted_weight(result: Result, groups: WorkSums, metric: str, weight: Float64) -> Float64:
    """Of each group the weight of those of its kernels on which a metric was counted."""
    counted = ~np.isnan(result.counters.of_kernels(result.kernels, metric))
    return np.bincount(groups.of_kernel, np.where(counted, weight, 0), minlength=len(groups)).astype(np.float64)


def _json(nodes: list[tuple[_Node, int]], columns: dict[str, list[int] | list[float | None]]) -> Iterator[str]:
    """Node by node, not by recursion: trees may be deeper than Python's stack."""
    open_nodes = -1
    yield "["
    for number, (node, depth) in enumerate(nodes):
        if depth <= open_nodes:
            yield "]}" * (open_nodes - depth + 1) + ","
        open_nodes = depth
        frame = json.dumps({"name": node.name, "type": node.type})
        metrics = json.dumps({name: values[number] for name, values in columns.items()})
        yield f'{{"frame":{frame},"metrics":{metrics},"children":['
    yield "]}" * (open_nodes + 1) + "]"
