"""What stands around the events: who wrote the trace, the devices, the rank, and the names of the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuptiprof.occupancy import chip_limits
from cuptiprof.report import heading

if TYPE_CHECKING:
    from cuptiprof.result import Result


@dataclass(frozen=True)
class Row:
    """A row of the picture that needs a name."""

    pid: int
    tid: int
    name: str
    sort_index: int


def members(result: Result, trace_name: str, base_ns: int) -> dict[str, Any]:
    """Top-level members of the trace other than its events."""
    metadata = result.metadata
    given = metadata.get("distributed")
    distributed = dict(given) if isinstance(given, Mapping) else {}
    distributed["rank"] = distributed.get("rank") if isinstance(distributed.get("rank"), int) else 0
    distributed.setdefault("world_size", 1)
    label = heading.simulated_label(result)
    out: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": _devices(result),
        "distributedInfo": distributed,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base_ns,
        "traceName": f"{trace_name} [{label}]" if label else trace_name,
        "producer": f"cuptiprof {metadata.get('cuptiprof_version', '')}".strip(),
        "device": str(metadata.get("device", "")),
        "losses": heading.losses(result),
    }
    if result.simulated:
        out["simulated"] = True
        out["simulated_chip"] = str(metadata.get("simulated_chip") or "")
    return out


def _devices(result: Result) -> list[dict[str, Any]]:
    table = result.tables["devices"]
    out = []
    for i in range(len(table)):
        row = table.row(i)
        limits = chip_limits(row["compute_capability_major"], row["compute_capability_minor"])
        warp = row["threads_per_warp"]
        properties = {
            "id": row["device"],
            "name": row["name"],
            "totalGlobalMem": row["global_memory_size"],
            "computeMajor": row["compute_capability_major"],
            "computeMinor": row["compute_capability_minor"],
            "maxThreadsPerBlock": row["max_threads_per_block"],
            "maxThreadsPerMultiprocessor": row["max_warps_per_multiprocessor"] * warp,
            "regsPerBlock": row["max_registers_per_block"],
            "warpSize": warp,
            "sharedMemPerBlock": row["max_shared_memory_per_block"],
            "numSms": row["num_multiprocessors"],
            "regsPerMultiprocessor": row["max_registers_per_multiprocessor"],
            "sharedMemPerMultiprocessor": row["max_shared_memory_per_multiprocessor"],
        }
        if limits is not None:
            properties["sharedMemPerBlockOptin"] = limits.max_shared_memory_per_block
        out.append(properties)
    return out


def row_names(result: Result, pid: int, devices: Iterable[int], rows: Iterable[Row]) -> list[str]:
    """Metadata events that name processes and rows."""
    simulated = heading.simulated_label(result)
    argv = result.metadata.get("argv") or []
    program = str(argv[0]) if argv else "python"
    events = _process(pid, program, "CPU", pid)
    for device in sorted(devices):
        label = f"GPU {device}, {simulated}" if simulated else f"GPU {device}"
        # After every process of the host, as Kineto sorts them.
        events += _process(device, program, label, 5_000_000 + device)
    for row in rows:
        events.append(_event("thread_name", row.pid, row.tid, {"name": row.name}))
        events.append(_event("thread_sort_index", row.pid, row.tid, {"sort_index": row.sort_index}))
    return events


def _process(pid: int, name: str, label: str, sort_index: int) -> list[str]:
    return [
        _event("process_name", pid, 0, {"name": name}),
        _event("process_labels", pid, 0, {"labels": label}),
        _event("process_sort_index", pid, 0, {"sort_index": sort_index}),
    ]


def _event(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    return json.dumps({"name": name, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args})
