"""Launches of one kernel that were made alike: same grid, block, registers and shared memory, on one GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Groups, Int64, group_stats
from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.data.codes import distinct_rows, first_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

_SHAPE = (
    *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"),
    "registers_per_thread", "static_shared_memory", "dynamic_shared_memory", "shared_memory_carveout",
)  # fmt: skip


@dataclass(frozen=True)
class LaunchGroups:
    """One entry a group.

    Attributes:
        which: group of each kernel.
        first: row in ``kernels`` of its first launch, with whose name, configuration and GPU all others agree.
        name: display name.
        stats: calls and durations, ns; ``stats.key`` is the group itself.
    """

    which: Array
    first: Int64
    name: list[str]
    stats: Groups

    def order(self, by: Int64) -> Int64:
        """Groups by a value, the largest first; alike ones as they first ran."""
        return np.lexsort((self.first, -by))


def launch_groups(result: Result, demangle: bool = True, *more: Array) -> LaunchGroups:
    """Kernels by name, GPU and what a launch is made of.

    Args:
        more: integers, one a kernel, that tell groups apart as well.
    """
    kernels = result.kernels
    names = kernel_names(kernels, demangle)
    found, which = distinct_rows(names.ids, kernels["device"], _shapes(result.launch_configs, kernels["config"]), *more)
    return LaunchGroups(
        which=which,
        first=first_rows(which, len(found)),
        name=[names.names[i] for i in found[:, 0].tolist()],
        stats=group_stats(which, np.maximum(kernels["end"], kernels["start"]), kernels["start"]),
    )


def _shapes(configs: Table, config: Array) -> Array:
    """Number of each kernel's shape. What lies outside of the table is none of its rows."""
    if not len(configs):
        return np.zeros(len(config), np.int64)
    found, shape = distinct_rows(*(configs[column] for column in _SHAPE))
    return np.where(config < len(configs), shape[np.minimum(config, len(configs) - 1)], len(found)).astype(np.int64)
