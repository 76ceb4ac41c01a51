"""Runs of every kind of row, made from a seed: calls inside regions and operators on two threads, and what they caused."""

from __future__ import annotations

from typing import Any

import numpy as np
from report_results import config, make_result

from cuptiprof.data.result import Result

BEGIN = 10**12
"""of the run clock, ns"""
UNIX = 1_700_000_000 * 10**9
PID = 4711
THREADS = (4711, 4790)
_LAUNCHES = (("cudaLaunchKernel", 0, 211), ("cuLaunchKernel", 1, 307))
_REGIONS = ("step", "fwd", "a/b", "ünïcode")
_OPERATORS = ("aten::mm", "aten::add_", "Optimizer.step#SGD.step")


def whole_run(seed: int) -> Result:
    """Times are whole microseconds apart; every region, operator and call has a time of its own."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (
        "kernels", "memcpys", "memsets", "api_calls", "synchronizations", "cuda_events", "memory", "memory_pools", "allocator_events",
        "allocator_blocks", "collectives", "overhead", "graph_launches", "contexts", "streams", "devices", "regions", "stacks", "operators",
        "markers", "metric_ranges", "metrics", "launch_configs", "system_samples")}  # fmt: skip
    rows["launch_configs"] = [
        config((4, 2, 1)),
        config((8, 1, 1), (64, 2, 1), registers_per_thread=40, static_shared_memory=512),
    ]
    for thread in THREADS:
        _host(rng, rows, thread)
    _around(rng, rows)
    metadata = {"pid": PID, "clock_pairs": [[BEGIN, UNIX]], "start_time_ns": BEGIN}
    return make_result(rows, metadata, {"pool_exhausted": int(rng.integers(1, 9))})


def _host(rng: np.random.Generator, rows: dict[str, list[dict[str, Any]]], thread: int) -> None:
    now = BEGIN + 1_000_000 * THREADS.index(thread)
    open_: list[tuple[str, dict[str, Any]]] = []
    steps = ["region", "operator", "launch", "copy", "set", "wait", "leave", "event"]
    for step in [*rng.permutation(np.repeat(steps, 3)).tolist(), *["leave"] * 20]:
        now += 1000 * int(rng.integers(1, 5))
        if step == "region":
            names = [r["name"] for kind, r in open_ if kind == "regions"]
            name = str(rng.choice(_REGIONS))
            path = "/".join(n.replace("/", "\\/") for n in [*names, name])
            parent = next((r["instance"] for kind, r in reversed(open_) if kind == "regions"), 0)
            source = int(rng.integers(0, 2))
            row = {"name": name, "path": path, "start": now, "instance": len(rows["regions"]) + 1, "parent": parent,
                   "depth": len(names), "thread": thread, "source": source, "domain": "library" if source else ""}  # fmt: skip
            rows["regions"].append(row)
            open_.append(("regions", row))
        elif step == "operator":
            parent = next((r["instance"] for kind, r in reversed(open_) if kind == "operators"), 0)
            row = {"name": str(rng.choice(_OPERATORS)), "start": now, "instance": len(rows["operators"]) + 1, "parent": parent,
                   "thread": thread, "sequence": int(rng.integers(0, 9)), **_place(open_, "region")}  # fmt: skip
            rows["operators"].append(row)
            open_.append(("operators", row))
        elif step == "leave" and open_:
            open_.pop()[1]["end"] = now
        elif step not in ("leave", "region", "operator"):
            now = _call(rng, rows, thread, step, now, open_)


def _place(open_: list[tuple[str, dict[str, Any]]], *columns: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    region = next((r for kind, r in reversed(open_) if kind == "regions"), None)
    operators = [r for kind, r in open_ if kind == "operators"]
    if "region" in columns and region is not None:
        out |= {"region": region["path"], "region_instance": region["instance"]}
    if "operator" in columns and operators:
        path = "/".join(r["name"].replace("/", "\\/") for r in operators)
        out |= {"operator": path, "operator_instance": operators[-1]["instance"]}
    return out


def _call(
    rng: np.random.Generator, rows: dict[str, list[dict[str, Any]]], thread: int, step: str, now: int, open_: Any
) -> int:
    correlation = len(rows["api_calls"]) + 1
    name, domain, cbid = {"copy": ("cudaMemcpyAsync", 0, 41), "set": ("cudaMemsetAsync", 0, 51), "wait": ("cudaStreamSynchronize", 0, 131),
                          "event": ("cudaEventRecord", 0, 135)}.get(step) or _LAUNCHES[int(rng.integers(0, 2))]  # fmt: skip
    end = now + 1000 * int(rng.integers(1, 4))
    place = _place(open_, "region") if step in ("launch", "copy", "set") else {}
    rows["api_calls"].append({"name": name, "domain": domain, "cbid": cbid, "start": now, "end": end, "thread": thread, "process": PID,
                              "correlation_id": correlation, **place})  # fmt: skip
    stream = 7 + THREADS.index(thread)
    device = {"device": 0, "context": 1, "stream": stream, "correlation_id": correlation}
    # Work of a stream has a second of its own for each call, so that none overlaps.
    begins = BEGIN + 10_000_000 + correlation * 50_000
    work = {
        "start": begins,
        "end": begins + 1000 * int(rng.integers(1, 40)),
        "thread": thread,
        **device,
        **_place(open_, "region", "operator"),
    }
    if step == "launch":
        name = str(rng.choice(["_Z4gemmPfS_i", "void k<float>(int)", "triton_0"]))
        rows["kernels"].append({**work, "name": name, "config": int(rng.integers(0, 2))})
    elif step == "copy":
        rows["memcpys"].append(
            {
                **work,
                "bytes": 4096,
                "copy_kind": 1,
                "src_kind": 2,
                "dst_kind": 3,
                "is_async": 1,
                "src_context": 1,
                "dst_context": 1,
            }
        )
    elif step == "set":
        rows["memsets"].append({**work, "bytes": 64, "value": 7, "memory_kind": 3, "is_async": 1})
    elif step == "wait":
        rows["synchronizations"].append(
            {
                "start": now,
                "end": end,
                "type": 3,
                "context": 1,
                "stream": stream,
                "event": 2**32 - 1,
                "correlation_id": correlation,
            }
        )
    else:
        rows["cuda_events"].append({**device, "event": correlation})
    return end


def _around(rng: np.random.Generator, rows: dict[str, list[dict[str, Any]]]) -> None:
    late = BEGIN + 40_000_000
    rows["devices"] = [{"device": 0, "name": "NVIDIA H100", "num_multiprocessors": 132, "global_memory_size": 80 << 30, "compute_capability_major": 9,
                        "threads_per_warp": 32, "max_warps_per_multiprocessor": 64, "core_clock_rate": 1_980_000}]  # fmt: skip
    rows["contexts"] = [{"context": 1, "device": 0, "null_stream": 7}]
    rows["streams"] = [{"context": 1, "stream": s, "priority": -1, "flag": 2} for s in (7, 8)]
    rows["overhead"] = [{"start": late, "end": late + 5000, "kind": 2 << 16, "process": PID, "thread": THREADS[0]}]
    rows["memory"] = [{"timestamp": late + i, "address": 1 << 40, "bytes": 512, "operation": 1 + i, "memory_kind": 3, "correlation_id": 900 + i,
                       "process": PID, "stream": 2**32 - 1, "context": 1} for i in range(2)]  # fmt: skip
    rows["memory_pools"] = [{"timestamp": late, "address": 1 << 41, "size": 1 << 20, "operation": 1, "process": PID}]
    rows["allocator_events"] = [
        {"timestamp": late + 1000 * i, "action": (1, 3)[i], "bytes": 512, "address": 4096, "thread": THREADS[0]}
        for i in range(2)
    ]
    rows["allocator_blocks"] = [
        {"address": 4096, "bytes": 512, "requested": 500, "segment": 4096, "segment_bytes": 1 << 20, "state": 1}
    ]
    rows["collectives"] = [{"name": "all_reduce", "start": late, "end": late + 9000, "thread": THREADS[0], "dtype": "float32", "in_bytes": 4096,
                            "out_bytes": 4096, "group": "0", "group_size": 2, "instance": 1, "backend": "nccl"}]  # fmt: skip
    rows["system_samples"] = [
        {"timestamp": late + 1000 * i, "counter": counter, "device": device, "value": 300.5 + i}
        for i, (counter, device) in enumerate(
            (("power", 0), ("power", 1), ("process_cpu", -1), ("xid", 0), ("power", 0))
        )
    ]
    rows["graph_launches"] = [
        {
            "start": late,
            "end": late + 7000,
            "correlation_id": 800,
            "graph_id": 5,
            "device": 0,
            "context": 1,
            "stream": 7,
        }
    ]
    rows["stacks"] = [{"id": 1, "line": 3, "file": "train.py", "function": "main", "first_line": 1, "is_user": 1}]
    rows["kernels"][0] |= {"stack": 1}
    rows["markers"] = [
        {"name": "here", "category": "nvtx", "start": late, "end": late, "thread": THREADS[0], "domain": "library"},
        {"name": "while", "category": "nvtx", "start": late, "end": late + 3000, "thread": THREADS[1]},
        {
            "name": "ProfilerStep#3",
            "category": "step",
            "id": 3,
            "start": late + 5000,
            "end": late + 9000,
            "thread": THREADS[0],
        },
    ]
    kernel = rows["kernels"][-1]
    rows["metric_ranges"] = [
        {"id": 1, "kind": 1, "strategy": 1, "name": kernel["name"], "start": kernel["start"], "end": kernel["end"], "occurrences": 1,
         "correlation_id": kernel["correlation_id"], "thread": kernel["thread"], "context": 1, "stream": kernel["stream"]},
        {"id": 2, "kind": 4, "strategy": 4, "start": late, "end": late + 1000, "occurrences": 1},
    ]  # fmt: skip
    rows["metrics"] = [
        {"range": i, "metric": "sm__cycles_active.avg", "value": float(rng.integers(1, 99)), "count": 1} for i in (1, 2)
    ]
