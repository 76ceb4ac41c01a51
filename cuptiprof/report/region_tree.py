"""The tree of region paths of a run, in the order in which regions were first entered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cuptiprof.report.aggregate import AnyArray, Int64

if TYPE_CHECKING:
    from cuptiprof.result import Result

WORK_TABLES = ("kernels", "memcpys", "memsets", "graph_launches")


@dataclass(frozen=True)
class RegionTree:
    """Distinct paths in pre-order (a region, then what is nested in it).

    Attributes:
        paths, names: path and own name of each node.
        depth: enclosing regions that are themselves nodes.
        size: nodes of the subtree, the node included; a subtree is ``[i, i + size[i])``.
        node_of_code: string index -> node, -1 for strings that are no path.
    """

    paths: list[str]
    names: list[str]
    depth: Int64
    size: Int64
    node_of_code: Int64

    def nodes(self, codes: AnyArray) -> Int64:
        """Node of each path in a column of string indices; -1: no region."""
        return self.node_of_code[codes]

    def subtree_sum(self, own: Int64) -> Int64:
        """Sum over each node and all below it."""
        cumulative = np.r_[0, np.cumsum(own)]
        first = np.arange(len(own))
        return cumulative[first + self.size] - cumulative[first]

    def ancestor_at(self, level: int) -> Int64:
        """For each node its ancestor (or itself) of depth ``level``; -1 for shallower nodes."""
        at_level = np.flatnonzero(self.depth == level)
        out = np.full(len(self.paths), -1, np.int64)
        out[at_level] = at_level
        return np.where(self.depth < level, -1, np.maximum.accumulate(out))


def region_tree(result: Result) -> RegionTree:
    regions = result.tables["regions"]
    strings = regions.strings
    entered: dict[int, int] = {}  # path code -> time of the first entry
    name_of: dict[str, str] = {}
    codes = regions.codes("path")
    if len(regions):
        order = np.argsort(regions["start"], kind="stable")
        used, first = np.unique(codes[order], return_index=True)
        rows = order[first]
        for code, start, name in zip(
            used.tolist(),
            regions["start"][rows].tolist(),
            regions.codes("name")[rows].tolist(),
            strict=True,
        ):
            entered[code] = start
            name_of[strings[code]] = strings[name]
    for table_name in WORK_TABLES:  # paths whose regions were lost still carry work
        table = result.tables[table_name]
        if len(table):
            order = np.argsort(table["start"], kind="stable")
            used, first = np.unique(table.codes("region")[order], return_index=True)
            for code, start in zip(used.tolist(), table["start"][order[first]].tolist(), strict=True):
                if strings[code]:
                    entered.setdefault(code, start)

    by_path = {strings[code]: code for code in entered}
    children: dict[str, list[str]] = {}
    for path in sorted(by_path, key=lambda path: (entered[by_path[path]], path)):
        children.setdefault(_parent(path, name_of.get(path), by_path), []).append(path)

    paths: list[str] = []
    depths: list[int] = []
    sizes: list[int] = []
    # Depth first without recursion: nesting is as deep as the program made it.
    stack: list[tuple[str, int, int]] = [(path, 0, -1) for path in reversed(children.get("", []))]
    parents: list[int] = []
    while stack:
        path, depth, parent = stack.pop()
        node = len(paths)
        paths.append(path)
        depths.append(depth)
        sizes.append(1)
        parents.append(parent)
        stack += [(child, depth + 1, node) for child in reversed(children.get(path, []))]
    for node in range(len(paths) - 1, -1, -1):
        if parents[node] >= 0:
            sizes[parents[node]] += sizes[node]
    node_of_code = np.full(max(len(strings), 1), -1, np.int64)
    for node, path in enumerate(paths):
        node_of_code[by_path[path]] = node
    names = [
        name_of.get(path, path[len(paths[parent]) + 1 :] if parent >= 0 else path)
        for path, parent in zip(paths, parents, strict=True)
    ]
    return RegionTree(
        paths, names, np.asarray(depths, np.int64), np.asarray(sizes, np.int64), node_of_code
    )


def _parent(path: str, name: str | None, known: dict[str, int]) -> str:
    """Path of the enclosing region. A name may itself hold a slash, so the name is cut off whole where it is known."""
    rest = path[: len(path) - len(name) - 1] if name is not None and len(name) < len(path) else ""
    if name is None:
        rest = path.rpartition("/")[0]
    while rest and rest not in known:
        rest = rest.rpartition("/")[0]
    return rest
