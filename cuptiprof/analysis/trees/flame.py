"""GPU time by what launched it (stacks of Python frames, regions, PyTorch's modules or operators), down to the kernel: what flame graphs
are drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cuptiprof import _core
from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.operator_work.module_stats import module_of_work
from cuptiprof.analysis.trees.grouped_work import grouped_work, work_tables
from cuptiprof.analysis.trees.region_tree import RegionTree, path_tree
from cuptiprof.data.python_stacks import Frame, PythonStacks
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

StackBy = Literal["python", "region", "module", "operator"]
STACKS_BY: tuple[StackBy, ...] = get_args(StackBy)
NO_STACK = {
    "python": "(no Python code)",
    "region": "(no region)",
    "module": "(no module)",
    "operator": "(no operator)",
}
STACK_WORDS = {"python": "Python stack", "region": "region", "module": "module", "operator": "operator"}


@dataclass(frozen=True)
class FlameStack:
    """One path of a flame graph.

    Attributes:
        frames: from the outermost; empty: nothing of the kind is known to have launched it. A region, a module and an operator is a
            frame of no file.
        work: name of the kernel, copy or set.
        ns: their durations on the GPU, added up.
    """

    frames: tuple[Frame, ...]
    work: str
    ns: int


@dataclass(frozen=True)
class WorkStacks:
    """Of each row of the tables of GPU work the stack it was launched from.

    Attributes:
        by: what stacks are of.
        columns: number of the stack of each row, an array a table.
    """

    by: StackBy
    columns: list[Int64]
    _source: PythonStacks | RegionTree

    def frames(self, number: int) -> tuple[Frame, ...]:
        """From the outermost; none of what was launched outside."""
        if isinstance(self._source, PythonStacks):
            return tuple(reversed(self._source.frames(number)))
        return tuple(Frame("", name, 0, 0, True) for name in self._source.paths[number]) if number >= 0 else ()


def usual_stacks(result: Result) -> StackBy:
    """Python's where the run has any, else those of regions."""
    return "python" if len(result.tables["stacks"]) else "region"


def work_stacks(result: Result, tables: Sequence[Table], by: StackBy) -> WorkStacks:
    """Stacks of the rows of `tables`, which are those of ``work_tables``."""
    if by == "python":
        columns = [_codes(table, "stack") for table in tables]
        return WorkStacks(by, columns, result.python_stacks())
    if by == "module":
        # Whole graphs are not looked into: they have no module.
        columns = [*module_of_work(result, tables[:-1]), np.zeros(len(tables[-1]), np.int64)]
        return _by_path(by, columns, path_tree(result.kernels.strings, columns, lambda path: path.split(".")))
    columns = [_codes(table, by) for table in tables]
    return _by_path(by, columns, path_tree(result.kernels.strings, columns, _core.split_region_path))


def flame_stacks(result: Result, by: StackBy) -> dict[int, list[FlameStack]]:
    """By GPU, each stack with each kernel it launched, once; in the order in which they came."""
    tables = work_tables(result)
    stacks = work_stacks(result, tables, by)
    groups = grouped_work(
        result, tables, {"stack": stacks.columns, "device": [table.codes("device") for table in tables]}
    )
    known = {number: stacks.frames(number) for number in np.unique(groups.keys["stack"]).tolist()}
    times: dict[int, Counter[tuple[int, str]]] = {}
    keys = (groups.keys[name].tolist() for name in ("device", "stack", "work"))
    for device, stack, work, ns in zip(*keys, groups.ns.tolist(), strict=True):
        times.setdefault(device, Counter())[stack, groups.names[work]] += ns
    return {
        device: [FlameStack(known[stack], work, ns) for (stack, work), ns in of.items()]
        for device, of in sorted(times.items())
    }


def _by_path(by: StackBy, columns: list[Int64], tree: RegionTree) -> WorkStacks:
    nodes = [np.where(codes != 0, tree.nodes(codes), -1).astype(np.int64) for codes in columns]
    return WorkStacks(by, nodes, tree)


def _codes(table: Table, column: str) -> Int64:
    """A column as it is stored; whole graphs have none of the kinds of stacks but regions."""
    if column not in table.column_names:
        return np.zeros(len(table), np.int64)
    codes: Array = table.codes(column)
    return codes.astype(np.int64)
