"""GPU work, calls, waits, events and memory as Nsight Systems' tables."""

from __future__ import annotations

import numpy as np

from cuptiprof import _core
from cuptiprof.data.codes import Int64, renumbered
from cuptiprof.data.enums import OVERHEAD_KINDS
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.databases.database_writer import Column
from cuptiprof.export.databases.nsys_run import NsysRun
from cuptiprof.export.databases.nsys_schema import KIND, LARGEST_LAUNCH_TYPE, MEMORY_KIND_UNKNOWN
from cuptiprof.io.sqlite.work_rows import CONFIG
from cuptiprof.text.names import display_name

_NONE_OF_WORK = {"graphNodeId": 0, "graphId": 0, "correlationId": 0}


def add_work(run: NsysRun) -> None:
    """Every table of this file."""
    _kernels(run)
    _copies(run)
    _sets(run)
    _graphs(run)
    _calls(run)
    _waits(run)
    _events(run)
    _memory(run)
    _overhead(run)


def _work(run: NsysRun, table: Table) -> dict[str, Column]:
    return {
        **run.span(table),
        "deviceId": table["device"],
        "contextId": table["context"],
        "streamId": table["stream"],
        "correlationId": table["correlation_id"],
        "globalPid": run.ids.of_work(table["correlation_id"]),
    }


def _kernels(run: NsysRun) -> None:
    table, configs = run.result.tables["kernels"], run.result.tables["launch_configs"]
    used, which = renumbered(table.codes("name"))
    mangled = [table.strings[code] for code in used.tolist()]
    shown = [display_name(name) for name in mangled]

    def numbers(names: list[str]) -> Int64:
        of_names = np.array([run.texts.number(name) for name in names], np.int64)
        return of_names[which] if len(of_names) else np.zeros(0, np.int64)

    rows = table["config"]
    launch_type = configs["launch_type"].astype(np.int64)
    columns = {
        **_work(run, table),
        "demangledName": numbers(shown),
        "shortName": numbers([_core.function_base(name) or name for name in shown]),
        "mangledName": numbers(mangled),
        "launchType": np.where(launch_type <= LARGEST_LAUNCH_TYPE, launch_type + 1, 0)[rows],
        "cacheConfig": (configs["cache_config"] >> 4)[rows],
        "sharedMemoryLimitConfig": configs["shmem_limit_config"][rows],
        **{theirs: configs[ours][rows] for theirs, ours in CONFIG.items()},
        "gridId": np.arange(1, len(table) + 1),  # CUPTI's are not kept: unique, as those are
        "graphNodeId": table["graph_node_id"],
        "graphId": table["graph_id"],
    }
    none = dict.fromkeys((name for name in columns if name.startswith(("cluster", "max"))), 0)
    run.add(KIND + "KERNEL", len(table), columns, {**_NONE_OF_WORK, **none})


def _copies(run: NsysRun) -> None:
    table = run.result.tables["memcpys"]
    columns = {
        **_work(run, table),
        "bytes": table["bytes"],
        "copyKind": table["copy_kind"],
        "srcKind": memory_kind(table["src_kind"]),
        "dstKind": memory_kind(table["dst_kind"]),
        "srcDeviceId": table["src_device"],
        "srcContextId": table["src_context"],
        "dstDeviceId": table["dst_device"],
        "dstContextId": table["dst_context"],
        "graphNodeId": table["graph_node_id"],
    }
    run.add(KIND + "MEMCPY", len(table), columns, {"graphNodeId": 0, "correlationId": 0})


def _sets(run: NsysRun) -> None:
    table = run.result.tables["memsets"]
    columns = {
        **_work(run, table),
        "value": table["value"],
        "bytes": table["bytes"],
        "graphNodeId": table["graph_node_id"],
        "memKind": memory_kind(table["memory_kind"]),
    }
    run.add(KIND + "MEMSET", len(table), columns, {"graphNodeId": 0, "correlationId": 0})


def _graphs(run: NsysRun) -> None:
    table = run.result.tables["graph_launches"]
    graph = table["graph_id"]
    run.add(KIND + "GRAPH_TRACE", len(table), {**_work(run, table), "graphId": graph, "graphExecId": graph}, {"correlationId": 0})  # fmt: skip


def _calls(run: NsysRun) -> None:
    table = run.result.tables["api_calls"]
    columns = {
        **run.span(table),
        "eventClass": table["domain"],  # 0 the runtime, 1 the driver, there as here
        "globalTid": run.ids.of_calls(table["thread"]),
        "correlationId": np.where(_repeated(table), 0, table["correlation_id"]),
        "nameId": run.names(table, "name"),
        "returnValue": table["return_value"],
    }
    run.add(KIND + "RUNTIME", len(table), columns, {"correlationId": 0})


def _repeated(table: Table) -> Array:
    """Calls whose correlation ID another one has: the driver's within the runtime's. Reports join work to calls by it, and would count work twice."""
    order = np.lexsort((table["domain"], table["correlation_id"]))
    ordered = table["correlation_id"][order]
    repeated = np.zeros(len(table), bool)
    repeated[order[1:]] = ordered[1:] == ordered[:-1]
    return repeated


def _waits(run: NsysRun) -> None:
    table = run.result.tables["synchronizations"]
    columns = {
        **run.span(table),
        "deviceId": run.who.device_of_context(table["context"]),
        "contextId": table["context"],
        "streamId": table["stream"],
        "correlationId": table["correlation_id"],
        "globalPid": run.ids.of_work(table["correlation_id"]),
        "syncType": table["type"],
        "eventId": table["event"],
    }
    run.add(KIND + "SYNCHRONIZATION", len(table), columns, {"correlationId": 0})


def _events(run: NsysRun) -> None:
    table = run.result.tables["cuda_events"]
    columns = {
        "deviceId": table["device"],
        "contextId": table["context"],
        "streamId": table["stream"],
        "correlationId": table["correlation_id"],
        "globalPid": run.ids.of_work(table["correlation_id"]),
        "eventId": table["event"],
    }
    run.add(KIND + "CUDA_EVENT", len(table), columns, {"correlationId": 0})


def _memory(run: NsysRun) -> None:
    table = run.result.tables["memory"]
    columns = {
        "start": run.since(table["timestamp"]),
        "globalPid": run.ids.of_work(table["correlation_id"]),
        "deviceId": table["device"],
        "contextId": table["context"],
        "address": table["address"],
        "pc": table["pc"],
        "bytes": table["bytes"],
        "memKind": memory_kind(table["memory_kind"]),
        "memoryOperationType": table["operation"].astype(np.int64) - 1,
        "correlationId": table["correlation_id"],
        "streamId": table["stream"],
        "localMemoryPoolAddress": table["pool_address"],
        "localMemoryPoolSize": table["pool_size"],
        "localMemoryPoolUtilizedSize": table["pool_utilized"],
    }
    pools = dict.fromkeys((name for name in columns if name.startswith("localMemoryPool")), 0)
    run.add("CUDA_GPU_MEMORY_USAGE_EVENTS", len(table), columns, {"correlationId": 0, **pools})


def _overhead(run: NsysRun) -> None:
    table = run.result.tables["overhead"]
    used, which = renumbered(table["kind"])
    names = np.array([run.texts.number(OVERHEAD_KINDS.get(kind, "Unknown")) for kind in used.tolist()], np.int64)
    columns = {
        **run.span(table),
        "globalTid": run.ids.of_threads(table["thread"]),
        "nameId": names[which] if len(names) else which,
        "returnValue": 0,
    }
    run.add("PROFILER_OVERHEAD", len(table), columns)


def memory_kind(cupti: Array) -> Int64:
    """CUPTI's numbers as nsys': 0 pageable, 1 pinned, 2 device, ..., 7 unknown."""
    kind = np.asarray(cupti, np.int64) - 1
    return np.where((kind >= 0) & (kind < MEMORY_KIND_UNKNOWN), kind, MEMORY_KIND_UNKNOWN)
