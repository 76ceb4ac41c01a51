"""The tree of region paths of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof import _core
from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.codes import distinct
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array

WORK_TABLES = ("kernels", "memcpys", "memsets", "graph_launches")
NO_REGION = "(no region)"
_STEP = re.compile(r"^ProfilerStep#\d+")


@dataclass(frozen=True)
class RegionTree:
    """Distinct regions; a parent has a smaller number than its children.

    Attributes:
        names: own name of each node; ``ProfilerStep#N`` of all N is one node.
        paths: names from the outermost, as tuples.
        parent: node of the enclosing region, -1 for outermost ones.
        depth: number of enclosing regions.
        node_of_code: string index -> node, -1 for strings that are no path in use. The empty path has a node of its own,
            ``(no region)``, if any work lies outside of all regions.
    """

    names: list[str]
    paths: list[tuple[str, ...]]
    parent: Int64
    depth: Int64
    node_of_code: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.names)

    def nodes(self, codes: Array) -> npt.NDArray[np.int32]:
        """Node of each path in a column of string indices."""
        return self.node_of_code[codes]

    def subtree_sum(self, own: Int64) -> Int64:
        """Sum over each node and all below it."""
        total: list[int] = own.tolist()
        for node in range(len(total) - 1, -1, -1):
            outer = int(self.parent[node])
            if outer >= 0:
                total[outer] += total[node]
        return np.asarray(total, np.int64)

    def ancestors(self) -> Iterator[npt.NDArray[np.int32]]:
        """For each depth, deepest first: the ancestor (or itself) of that depth of every node; -1 where it is shallower."""
        at = np.arange(len(self))
        for level in range(int(self.depth.max()) if len(self) else -1, -1, -1):
            at = np.where(self.depth[at] > level, self.parent[at], at)
            yield np.where(self.depth >= level, at, -1).astype(np.int32)

    def preorder(self, weight: Int64) -> list[int]:
        """Nodes so that nested ones follow their parent, heavier siblings first."""
        children: dict[int, list[int]] = {}
        for node in np.argsort(weight, kind="stable").tolist():  # lightest first: the stack turns it round
            children.setdefault(int(self.parent[node]), []).append(node)
        order = []
        stack = children.get(-1, [])
        while stack:
            node = stack.pop()
            order.append(node)
            stack += children.get(node, [])
        return order


def region_tree(result: Result) -> RegionTree:
    columns = [result.regions.codes("path"), *(result.tables[name].codes("region") for name in WORK_TABLES)]
    return path_tree(result.regions.strings, columns)


def path_tree(
    strings: Sequence[str], columns: Sequence[Array], split: Callable[[str], list[str]] = _core.split_region_path
) -> RegionTree:
    """The tree of the paths in these columns, each of shape (rows,) with indices of `strings`; `split` makes names of a path."""
    used = np.unique(np.concatenate([distinct(codes) for codes in columns]))
    names: list[str] = []
    paths: list[tuple[str, ...]] = []
    parents: list[int] = []
    known: dict[tuple[int, str], int] = {}
    node_of_code = np.full(max(len(strings), 1), -1, np.int32)  # there may be one a row
    for code in used.tolist():
        path = strings[code]
        node = -1
        for name in split(path) if path else [NO_REGION]:
            shown = _STEP.sub("ProfilerStep#*", name)
            found = known.get((node, shown))
            if found is None:
                found = known[node, shown] = len(names)
                names.append(shown)
                paths.append((*(paths[node] if node >= 0 else ()), shown))
                parents.append(node)
            node = found
        node_of_code[code] = node
    depth = np.asarray([len(path) - 1 for path in paths], np.int64)
    return RegionTree(names, paths, np.asarray(parents, np.int64), depth, node_of_code)
