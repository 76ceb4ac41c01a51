"""What rows of kernels, copies, calls and devices have in common, whoever's database it is."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from cuptiprof import _core
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.tables import Strings, schema
from cuptiprof.io.sqlite.database import Int64
from cuptiprof.io.sqlite.table_rows import TableRows

PLACE = ("deviceId", "contextId", "streamId", "correlationId")
SPAN = ("start", "end")
_CARVEOUT_NOT_ASKED_FOR = 255
CONFIG = {
    **{f"{what}{axis.upper()}": f"{what}_{axis}" for what in ("grid", "block", "cluster") for axis in "xyz"},
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_memory",
    "dynamicSharedMemory": "dynamic_shared_memory",
    "sharedMemoryExecuted": "shared_memory_executed",
    "localMemoryPerThread": "local_memory_per_thread",
    "localMemoryTotal": "local_memory_total",
    "clusterSchedulingPolicy": "cluster_scheduling_policy",
    "maxPotentialClusterSize": "max_potential_cluster_size",
    "maxActiveClusters": "max_active_clusters",
}
"""Columns of kernels in either database -> those of ``launch_configs``."""


def place(rows: TableRows) -> dict[str, Int64]:
    """Device, context, stream and correlation ID of GPU work."""
    return {
        "device": rows.count("deviceId"),
        "context": rows.count("contextId"),
        "stream": rows.count("streamId"),
        "correlation_id": rows.count("correlationId"),
    }


def configs(rows: TableRows) -> dict[str, Int64]:
    """Columns of :data:`CONFIG` of each row, to be made ``launch_configs`` by :func:`with_configs` once rows are left out."""
    limits = {
        column.name: 31 if column.dtype == "int32" else np.dtype(column.dtype).itemsize * 8
        for column in schema()["launch_configs"].values()
    }
    sizes = ("grid", "block")
    return {
        f"config {name}": rows.count(given, limits[name], 1 if name.startswith(sizes) else 0)
        for given, name in CONFIG.items()
    }


def with_configs(kept: dict[str, Any]) -> dict[str, Any]:
    """Takes the columns of :func:`configs` out of a table in the making and puts ``config`` there. Returns ``launch_configs``."""
    taken = {name.removeprefix("config "): kept.pop(name) for name in list(kept) if name.startswith("config ")}
    found, which = distinct_rows(*taken.values())
    kept["config"] = which.astype(np.int64)
    made = {name: found[:, i] for i, name in enumerate(taken)}
    return {**made, "shared_memory_carveout": np.full(len(found), _CARVEOUT_NOT_ASKED_FOR)}


class Texts:
    """Texts of a database by their numbers, as indices into the strings of the run; 0 for a number that it does not have."""

    def __init__(self, texts: Mapping[int, str], strings: Strings) -> None:
        self.texts, self._strings = texts, strings

    def codes(self, numbers: Int64, *, api: bool = False) -> Int64:
        """Of each number; `api`: without the version suffix of a function."""
        used, which = renumbered(numbers)
        names = [self.texts.get(number, "") for number in used.tolist()]
        codes = np.array([self._strings.code(base_name(name) if api else name) for name in names], np.int64)
        return codes[which] if len(codes) else np.zeros(0, np.int64)


@functools.lru_cache(maxsize=4096)
def base_name(name: str) -> str:
    """A function of CUDA without its version suffix."""
    return _core.api_base_name(name)
