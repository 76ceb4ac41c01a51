"""GPU work, waits, CUPTI's own time and devices as nvprof's tables."""

from __future__ import annotations

import numpy as np

from cuptiprof.data.tables import Table
from cuptiprof.export.databases.database_writer import Column
from cuptiprof.export.databases.nvprof_run import THREAD, NvprofRun
from cuptiprof.export.databases.nvprof_schema import KIND
from cuptiprof.io.sqlite.nvprof import OF_DEVICE

_CONFIG = {
    **{f"{what}{axis.upper()}": f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"},
    "sharedMemoryConfig": "shared_memory_config",
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_memory",
    "dynamicSharedMemory": "dynamic_shared_memory",
    "localMemoryPerThread": "local_memory_per_thread",
    "localMemoryTotal": "local_memory_total",
}
_CUDA = 1
"""CUpti_ActivityComputeApiKind"""


def add_work(run: NvprofRun) -> None:
    """Every table of this file."""
    _kernels(run)
    _copies(run)
    _sets(run)
    _waits(run)
    _overhead(run)
    _contexts(run)
    _devices(run)


def _work(run: NvprofRun, table: Table) -> dict[str, Column]:
    return {
        **run.span(table),
        "deviceId": table["device"],
        "contextId": table["context"],
        "streamId": table["stream"],
        "correlationId": table["correlation_id"],
    }


def _kernels(run: NvprofRun) -> None:
    table, configs = run.result.tables["kernels"], run.result.tables["launch_configs"]
    rows = table["config"]
    caches = np.array([*(bytes([one]) for one in configs["cache_config"].tolist()), None], object)[:-1]
    partitioned = configs["partitioned_global_cache"]
    columns: dict[str, Column] = {
        **_work(run, table),
        **{theirs: configs[ours][rows] for theirs, ours in _CONFIG.items()},
        "cacheConfig": caches[rows].tolist() if len(rows) else [],
        "partitionedGlobalCacheRequested": (partitioned & 15)[rows],
        "partitionedGlobalCacheExecuted": (partitioned >> 4)[rows],
        "completed": np.where(table["completed"] != 0, run.unix(table["completed"]), 0),
        "gridId": np.arange(1, len(table) + 1),  # CUPTI's are not kept: unique, as those are
        "name": run.names(table, "name"),
    }
    run.add(KIND + "CONCURRENT_KERNEL", len(table), columns)


def _copies(run: NvprofRun) -> None:
    every = run.result.tables["memcpys"]
    for kind, mask in (("MEMCPY", every["is_peer"] == 0), ("MEMCPY2", every["is_peer"] != 0)):
        table = every.where(mask)
        columns: dict[str, Column] = {
            **_work(run, table),
            "copyKind": table["copy_kind"],
            "srcKind": table["src_kind"],
            "dstKind": table["dst_kind"],
            "flags": table["is_async"],
            "bytes": table["bytes"],
        }
        if kind == "MEMCPY2":
            columns |= {
                f"{side}{what}Id": table[f"{side}_{what.lower()}"] for side in ("src", "dst") for what in ("Device", "Context")
            }  # fmt: skip
        run.add(KIND + kind, len(table), columns)


def _sets(run: NvprofRun) -> None:
    table = run.result.tables["memsets"]
    columns = {
        **_work(run, table),
        "value": table["value"],
        "flags": table["is_async"],
        "memoryKind": table["memory_kind"],
        "bytes": table["bytes"],
    }
    run.add(KIND + "MEMSET", len(table), columns)


def _waits(run: NvprofRun) -> None:
    table = run.result.tables["synchronizations"]
    columns = {
        **run.span(table),
        "type": table["type"],
        "correlationId": table["correlation_id"],
        "contextId": table["context"],
        "streamId": table["stream"],
        "cudaEventId": table["event"],
    }
    run.add(KIND + "SYNCHRONIZATION", len(table), columns)


def _overhead(run: NvprofRun) -> None:
    table = run.result.tables["overhead"]
    columns: dict[str, Column] = {
        **run.span(table),
        "overheadKind": table["kind"],
        "objectKind": THREAD,
        "objectId": run.threads(table["thread"]),
    }
    run.add(KIND + "OVERHEAD", len(table), columns)


def _contexts(run: NvprofRun) -> None:
    table = run.result.tables["contexts"]
    columns: dict[str, Column] = {
        "contextId": table["context"],
        "deviceId": table["device"],
        "computeApiKind": _CUDA,
        "nullStreamId": table["null_stream"],
    }
    run.add(KIND + "CONTEXT", len(table), columns)


def _devices(run: NvprofRun) -> None:
    table = run.result.tables["devices"]
    columns: dict[str, Column] = {theirs: table[ours] for theirs, ours in OF_DEVICE.items()}
    run.add(KIND + "DEVICE", len(table), {**columns, "flags": 0, "name": run.names(table, "name")})
