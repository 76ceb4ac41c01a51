"""A run that has something for each chart of the page: steps of which one stands out, two streams, copies, memory, stacks."""

from __future__ import annotations

import random

from report_results import config, make_result

from cuptiprof.data.result import Result

STEPS, OUTLIER, MILLISECOND = 8, 5, 1_000_000


def charted_run(seed: int = 3, kernels: int = 20, name: str = "gemm") -> Result:
    """8 steps of `kernels` kernels each; step 5 takes three times as long. `name` is what the kernels begin with."""
    chance = random.Random(seed)
    rows: dict[str, list[dict[str, object]]] = {
        "kernels": [], "memcpys": [], "api_calls": [], "markers": [], "memory": [], "allocator_events": [],
        "launch_configs": [config((i + 1, 7, 1), (32 * (1 + i % 16), 1, 1)) for i in range(12)],
        "devices": [{"device": 0, "name": "NVIDIA A100-SXM4-40GB", "num_multiprocessors": 108, "compute_capability_major": 8,
                     "compute_capability_minor": 0, "threads_per_warp": 32, "global_memory_size": 40 << 30}],
        "stacks": [{"id": 1, "parent": 0, "file": "train.py", "function": "main", "line": 3, "is_user": 1},
                   {"id": 2, "parent": 1, "file": "train.py", "function": "step", "line": 9, "is_user": 1}],
        "allocator_blocks": [{"device": 0, "segment": 4096, "address": 4096, "bytes": 512, "requested": 500, "state": 3, "segment_bytes": 1 << 20}],
    }  # fmt: skip
    call = 0
    begin = MILLISECOND
    for step in range(STEPS):
        span = 3 * MILLISECOND * (3 if step == OUTLIER else 1) + 1000 * step
        end = begin + span
        rows["markers"].append({"category": "step", "name": f"ProfilerStep#{step}", "start": begin, "end": end})
        for i in range(kernels):
            call += 1
            at = begin + 1_000 + i * (span - 200_000) // kernels
            takes = int(chance.lognormvariate(9, 1.5)) % (span // kernels)
            where = "step/forward" if i % 3 else "step/backward"
            api = {
                "start": at,
                "end": at + 900,
                "name": "cudaLaunchKernel",
                "correlation_id": call,
                "thread": 7,
                "process": 9,
            }
            work = {"start": at + 1_500 + chance.randrange(9_000), "correlation_id": call, "device": 0, "stream": 7 + i % 2,
                    "region": where, "thread": 7}  # fmt: skip
            if i % 7 == 6:
                rows["memcpys"].append(
                    {
                        **work,
                        "end": work["start"] + takes + 500,
                        "bytes": 4096 * (i + 1),
                        "copy_kind": 1 + i % 2,
                        "src_kind": 2,
                        "dst_kind": 3,
                    }
                )
            else:
                rows["kernels"].append(
                    {
                        **work,
                        "end": work["start"] + takes,
                        "name": f"{name}{i % 5}",
                        "config": i % 12,
                        "stack": 1 + i % 2,
                        "context": 1,
                    }
                )
            rows["api_calls"].append(api)
        for i in range(6):
            at = begin + i * 100_000
            rows["memory"].append({"timestamp": at, "address": 4096 * (i + 1), "operation": 1 if step % 2 == 0 else 2,
                                   "bytes": 1 << (20 + i), "memory_kind": 3 if i % 2 else 2, "device": 0})  # fmt: skip
            rows["allocator_events"].append({"timestamp": at, "address": 512 * i, "device": 0, "bytes": 1000 * (i + 1),
                                             "action": 1 if step % 2 == 0 else 2})  # fmt: skip
        begin = end
    return make_result(rows, {"device": "sim", "simulated": True, "simulated_chip": "GA100"})
