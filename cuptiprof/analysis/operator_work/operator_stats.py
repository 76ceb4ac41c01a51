"""Operators of PyTorch added up: by name, by name and the shapes of their inputs, by module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.trees.host_tree import HostKind, host_tree
from cuptiprof.analysis.trees.region_tree import NO_REGION, path_tree
from cuptiprof.analysis.work.tensor_cores import is_eligible, tensor_core_ns
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array

GroupBy = Literal["operator", "shape"]

_WORK = ("kernels", "memcpys", "memsets")


@dataclass(frozen=True)
class OperatorStats:
    """One entry a group, in order of first appearance; times in ns, int64. Where operators were only named at launches (level
    "launch") there are no calls nor times of the host: None.

    Attributes:
        name: of the operator. shapes: JSON, as in ``operators.shapes``; empty unless grouped by them.
        calls: how often it ran.
        device_self, device_total: GPU work that it launched itself, and with what it called.
        host_self, host_total: time of the host without and with what it called (operators and CUDA calls).
        tensor_self, tensor_total: the part of device_self and device_total on tensor cores.
        eligible: tensor cores could do it.
    """

    name: list[str]
    shapes: list[str]
    calls: Int64 | None
    device_self: Int64
    device_total: Int64
    host_self: Int64 | None
    host_total: Int64 | None
    tensor_self: Int64
    tensor_total: Int64
    eligible: list[bool]

    def __len__(self) -> int:
        return len(self.name)


def operator_stats(result: Result, by: GroupBy = "operator") -> OperatorStats:
    """Every operator that ran, annotations of the user left out."""
    if not len(result.operators):
        return _named_at_launches(result)
    tree = host_tree(result)
    device, tensor = tree.device_self(result), tree.device_self(result, partial(tensor_core_ns, result))
    nesting = tree.nesting
    mine = np.flatnonzero((tree.kind == HostKind.OPERATOR) & ~tree.is_annotation)
    key = tree.name[mine]
    shape = tree.column(result, "shapes")[mine] if by == "shape" else np.zeros(len(mine), np.int64)
    groups, which = distinct_rows(key, shape)
    first, order = _in_order(which, len(groups), tree.start[mine])
    group, groups = order[which], groups[first]

    def total(value: Int64) -> Int64:
        return sum_by_group(group, value[mine], len(groups))

    strings = result.operators.strings
    names = [tree.names[name] for name in groups[:, 0].tolist()]
    return OperatorStats(
        name=names,
        shapes=[str(strings[code]) for code in groups[:, 1].tolist()],
        calls=np.bincount(group, minlength=len(groups)).astype(np.int64),
        device_self=total(device),
        device_total=total(nesting.subtree_sum(device)),
        host_self=total(tree.host_self()),
        host_total=total(tree.end - tree.start),
        tensor_self=total(tensor),
        tensor_total=total(nesting.subtree_sum(tensor)),
        eligible=[is_eligible(name) for name in names],
    )


def _in_order(group: Array, groups: int, start: Int64) -> tuple[Int64, Int64]:
    """Groups by the start of their first member, and which place each group takes."""
    earliest = np.full(groups, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(earliest, group, start)
    first = np.argsort(earliest, kind="stable")
    place = np.empty(groups, np.int64)
    place[first] = np.arange(groups)
    return first, place


def _named_at_launches(result: Result) -> OperatorStats:
    """What the paths of operators at launches tell."""
    tables = [result.tables[name] for name in _WORK]
    columns = [table.codes("operator") for table in tables]
    tree = path_tree(result.kernels.strings, columns)
    device, tensor = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    for table, codes in zip(tables, columns, strict=True):
        node = tree.nodes(codes)
        device += sum_by_group(node, table["duration"], len(tree))
        tensor += sum_by_group(node, tensor_core_ns(result, table), len(tree))
    ids: dict[str, int] = {}
    nodes = zip(tree.names, tree.paths, strict=True)
    group = np.array([-1 if path == (NO_REGION,) else ids.setdefault(name, len(ids)) for name, path in nodes], np.int64)
    mine = np.flatnonzero(group >= 0)

    def total(value: Int64) -> Int64:
        return sum_by_group(group[mine], value[mine], len(ids))

    names = list(ids)
    return OperatorStats(
        name=names,
        shapes=[""] * len(names),
        calls=None,
        device_self=total(device),
        device_total=total(tree.subtree_sum(device)),
        host_self=None,
        host_total=None,
        tensor_self=total(tensor),
        tensor_total=total(tree.subtree_sum(tensor)),
        eligible=[is_eligible(name) for name in names],
    )
