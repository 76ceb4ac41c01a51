"""What stands around the events: who wrote the trace, the devices, the rank, and the names of the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cuptiprof.analysis.counter_values.counter_record import CounterRecord
from cuptiprof.data.occupancy import chip_limits
from cuptiprof.data.result import Result
from cuptiprof.export.chrome.identity import Identity


@dataclass(frozen=True)
class TrackRow:
    """A row of the picture that needs a name."""

    pid: int
    tid: int
    name: str
    sort_index: int


def members(result: Result, base_ns: int) -> dict[str, Any]:
    """Top-level members of the trace other than its events."""
    metadata = result.metadata
    plan = CounterRecord.of(metadata)
    counted = list(plan.lines(run_is_simulated=result.simulated)) if plan is not None else []
    simulated = f"simulated ({metadata.get('simulated_chip') or 'unknown chip'})" if result.simulated else ""
    own = {
        "schemaVersion": 1,
        "deviceProperties": _devices(result),
        "distributedInfo": {**_distributed(metadata), "rank": int(metadata.get("rank", 0))},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base_ns,
        "traceName": " ".join(filter(None, [simulated, f"cuptiprof {metadata.get('cuptiprof_version', '')}".strip()])),
        "simulated": bool(result.simulated),
        "device": str(metadata.get("device", "")),
        **({"counters": counted} if counted else {}),
        "losses": {name: count for name, count in result.losses.items() if count},
    }
    given = metadata.get("trace_members")
    # After ours, and in place of none of them: HTA takes the first "rank" that it finds.
    more = {str(key): value for key, value in given.items()} if isinstance(given, dict) else {}
    return own | {key: value for key, value in more.items() if key not in own and key != "traceEvents"}


def _distributed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the imported trace says of its process group."""
    given = metadata.get("distributed")
    return dict(given) if isinstance(given, dict) else {}


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


def row_names(result: Result, ts: str, who: Identity, devices: Iterable[int], rows: Iterable[TrackRow]) -> list[str]:
    """Metadata events that name processes and rows; ``ts`` in microseconds."""

    def event(name: str, pid: int, tid: int, /, **args: Any) -> str:
        text = json.dumps({"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args})
        return f'{text[:-1]}, "ts": {ts}}}'

    simulated = " (simulated)" if result.simulated else ""
    pid, place = who.pid, who.place
    processes = [(pid, "CPU (simulated run)" if result.simulated else "CPU", pid)]
    # GPUs come after every process of the host, as Kineto sorts them; those of a rank among others after its own.
    after = 5_000_000 if place is None else 0
    processes += [(device, f"GPU {who.gpu_of(device)}{simulated}", after + device) for device in sorted(devices)]
    events = []
    for process, label, sort_index in processes:
        if place is not None and process == pid:
            label = ", ".join(filter(None, [label, place.labels]))
        events.append(event("process_name", process, 0, name="python" if place is None else place.name))
        events.append(event("process_labels", process, 0, labels=label))
        events.append(event("process_sort_index", process, 0, sort_index=sort_index))
    for row in rows:
        events.append(event("thread_name", row.pid, row.tid, name=row.name))
        events.append(event("thread_sort_index", row.pid, row.tid, sort_index=row.sort_index))
    return events
