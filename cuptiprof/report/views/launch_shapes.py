"""What views of launches that were made alike share: the columns that say how, and their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.work.launch_groups import LaunchGroups
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column

SHAPE = (
    Column("grid", "Grid", "dims", rank=2),
    Column("block", "Block", "dims", rank=3),
    Column("registers", "Regs", "count", rank=5),
    Column("shared_memory", "Shared", "bytes", rank=4),
    Column("device", "GPU", "count", rank=6),
)
"""``shared_memory`` is that of a block, static and dynamic."""


def shape_data(result: Result, groups: LaunchGroups, which: Int64) -> dict[str, list[Any]]:
    """Values of ``SHAPE``, name, calls and times of the groups ``which``."""
    kernels, configs, first = result.kernels, result.launch_configs, groups.first[which]
    config = kernels["config"][first]
    inside = config < len(configs)

    def of_config(column: str) -> list[Any]:
        out = np.zeros(len(config), np.int64)
        out[inside] = configs[column][config[inside]]
        values: list[Any] = out.tolist()
        return values

    shared = zip(of_config("static_shared_memory"), of_config("dynamic_shared_memory"), strict=True)
    stats = groups.stats
    total, calls = stats.total[which], stats.count[which]
    return {
        **{
            what: list(zip(*(of_config(f"{what}_{axis}") for axis in "xyz"), strict=True)) for what in ("grid", "block")
        },
        "registers": of_config("registers_per_thread"),
        "shared_memory": [sum(both) for both in shared],
        "device": kernels["device"][first].tolist(),
        "calls": calls.tolist(),
        "total_ns": total.tolist(),
        "mean_ns": (total / np.maximum(calls, 1)).tolist(),
        "min_ns": stats.minimum[which].tolist(),
        "max_ns": stats.maximum[which].tolist(),
        "name": [groups.name[i] for i in which.tolist()],
    }


def known(values: Any) -> list[float | None]:
    """Floats of a column; None for NaN."""
    return [None if value != value else value for value in values.tolist()]
