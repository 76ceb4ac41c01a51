"""How often operators, regions and steps ran on the host, and for how long: by the names that GPU work is grouped by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, group_stats
from cuptiprof.analysis.comparison.work_groups import WorkBy
from cuptiprof.analysis.trees.host_tree import DISPATCH_MODE
from cuptiprof.analysis.trees.region_tree import region_tree
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class HostGroups:
    """By name: calls, and ns of them added up, what is inside included. Shape (names,)."""

    names: list[str]
    calls: Int64
    time: Int64


def host_groups(result: Result, by: WorkBy) -> HostGroups:
    """Operators by name (the user's own scopes as well) or regions by path; nothing for what has no rows of its own on the host.

    As ``counts`` and ``total_duration`` of host events in Holistic Trace Analysis's ``TraceDiff``: those in others of the same name count, too.
    """
    names: list[str] = []
    if by == "operator":
        table = result.operators
        used, group = renumbered(table.codes("name"))
        names = [table.strings[code] for code in used.tolist()]
        if (
            result.simulated and DISPATCH_MODE in names
        ):  # stands between an operator and what runs it: of no program on a GPU
            rows = np.flatnonzero(group != names.index(DISPATCH_MODE))
            return _summed(names, group[rows], table["start"][rows], table["end"][rows])
    elif by == "region":
        table = result.regions
        tree = region_tree(result)
        names = ["/".join(path) for path in tree.paths]
        group = tree.nodes(table.codes("path")).astype(np.uint32)
    else:
        return HostGroups([], np.zeros(0, np.int64), np.zeros(0, np.int64))
    return _summed(names, group, table["start"], table["end"])


def _summed(names: list[str], group: Array, start: Array, end: Array) -> HostGroups:
    calls, time = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    stats = group_stats(group, end, start)
    calls[stats.key], time[stats.key] = stats.count, stats.total
    return HostGroups(names, calls, time)
