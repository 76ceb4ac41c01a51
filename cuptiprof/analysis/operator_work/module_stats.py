"""PyTorch modules added up: the work of the operators that ran in each, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.operator_work.operator_stacks import operator_origins
from cuptiprof.analysis.trees.host_tree import HostKind, HostTree, host_tree
from cuptiprof.analysis.trees.region_tree import RegionTree, path_tree
from cuptiprof.analysis.work.tensor_cores import tensor_core_ns
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table

_WORK = ("kernels", "memcpys", "memsets")


@dataclass(frozen=True)
class ModuleStats:
    """By node of the tree of modules (``a.b.c`` lies in ``a.b``); times in ns, int64.

    Attributes:
        tree: the modules; work of no module is a node ``(no region)`` of its own.
        operators: that ran in the module itself. None where operators have no rows, as the times of the host.
        device_self, host_self: of those; device_total, host_total: with the modules inside.
        tensor_self, tensor_total: the part of the device's times on tensor cores.
        backward: of device_total, what backward launched.
    """

    tree: RegionTree
    operators: Int64 | None
    device_self: Int64
    device_total: Int64
    host_self: Int64 | None
    host_total: Int64 | None
    tensor_self: Int64
    tensor_total: Int64
    backward: Int64


def module_stats(result: Result) -> ModuleStats:
    """Every module that launched work, or in which an operator ran."""
    tables = [result.tables[name] for name in _WORK]
    events = host_tree(result)
    of_place = operator_origins(result, events, "module")
    modules = [_module(result, events, of_place, table) for table in tables]
    tree = path_tree(result.operators.strings, [*modules, of_place], lambda path: path.split("."))
    device, tensor, backward = (np.zeros(len(tree), np.int64) for _ in range(3))
    for table, codes in zip(tables, modules, strict=True):
        node, duration = tree.nodes(codes), table["duration"]
        device += sum_by_group(node, duration, len(tree))
        tensor += sum_by_group(node, tensor_core_ns(result, table), len(tree))
        backward += sum_by_group(node, np.where(table["backward"] > 0, duration, 0), len(tree))
    count = host = None
    if len(result.operators):
        mine = np.flatnonzero((events.kind == HostKind.OPERATOR) & ~events.is_annotation)
        node = tree.nodes(of_place[mine])
        # What an operator's own CUDA calls took is the module's, too.
        duration = events.host_self() + events.nesting.children_sum(
            np.where(events.kind == HostKind.CALL, events.end - events.start, 0)
        )
        host = sum_by_group(node, duration[mine], len(tree))
        count = np.bincount(node, minlength=len(tree)).astype(np.int64)
    return ModuleStats(
        tree=tree,
        operators=count,
        device_self=device,
        device_total=tree.subtree_sum(device),
        host_self=host,
        host_total=tree.subtree_sum(host) if host is not None else None,
        tensor_self=tensor,
        tensor_total=tree.subtree_sum(tensor),
        backward=tree.subtree_sum(backward),
    )


def module_of_work(result: Result, tables: Sequence[Table]) -> list[Int64]:
    """String index of the module of each row of tables of GPU work; 0: none."""
    events = host_tree(result)
    of_place = operator_origins(result, events, "module")
    return [_module(result, events, of_place, table) for table in tables]


def _module(result: Result, tree: HostTree, of_place: Int64, work: Table) -> Int64:
    """Of each piece of work its module, as it was launched, else that of the operator that launched it."""
    own, place = work.codes("module").astype(np.int64), tree.places(result, work)
    return np.where((own == 0) & (place >= 0), of_place[place] if len(of_place) else 0, own)
