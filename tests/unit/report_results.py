"""Small hand-made results for the tests of reports and exports."""

from __future__ import annotations

from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table

HOSTILE = "=cmd|' /C calc'!A0 <b>x</b> [red]r[/red] \x1b[31m\u202eevil\r\n,\"q\" `t` *s* https://evil.example"


def make_result(
    tables: dict[str, list[dict[str, Any]]],
    metadata: dict[str, Any] | None = None,
    losses: dict[str, int] | None = None,
) -> Result:
    """A Result from rows; columns that are not given are 0, kernels without ``config`` have configuration 0."""
    strings = Strings()
    rows = dict(tables)
    if rows.get("kernels"):
        rows.setdefault("launch_configs", [config()])
    built = {}
    for name, entries in rows.items():
        keys = list(dict.fromkeys(key for entry in entries for key in entry))
        values = {key: [entry.get(key, 0) for entry in entries] for key in keys}
        for key, column in values.items():
            if any(isinstance(value, str) for value in column):
                values[key] = [value or "" for value in column]
            if key in ("flops", "bytes") and name == "regions":
                values[key] = [entry.get(key, float("nan")) for entry in entries]
        built[name] = Table.from_columns(name, values, strings)
    return Result(built, metadata or {}, losses)


def config(
    grid: tuple[int, int, int] = (4, 106, 1), block: tuple[int, int, int] = (128, 1, 1), **more: int
) -> dict[str, int]:
    return {
        **dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True)),
        **dict(zip(("block_x", "block_y", "block_z"), block, strict=True)),
        "registers_per_thread": 30,
        "shared_memory_carveout": 255,
        **more,
    }


def training_step() -> Result:
    """One step with two nested regions, overlap on a second stream, a copy, a set, a failed call and work outside."""
    return make_result(
        {
            "kernels": [
                {"name": "_Z4gemmPfS_i", "start": 2_000, "end": 12_000, "correlation_id": 2, "region": "step/fwd",
                 "region_instance": 2, "thread": 70, "device": 0, "context": 1, "stream": 7},
                {"name": "_Z4gemmPfS_i", "start": 13_000, "end": 25_345, "correlation_id": 3, "region": "step/fwd",
                 "region_instance": 2, "thread": 70, "device": 0, "context": 1, "stream": 7},
                {"name": "sgd", "start": 20_000, "end": 21_000, "correlation_id": 4, "region": "step", "region_instance": 1,
                 "thread": 70, "device": 0, "context": 1, "stream": 9},
                {"name": "warm up", "start": 500, "end": 700, "correlation_id": 1, "thread": 70, "device": 0, "context": 1,
                 "stream": 7},
            ],
            "launch_configs": [config(dynamic_shared_memory=2048, static_shared_memory=16)],
            "memcpys": [
                {"start": 900, "end": 1_900, "bytes": 4096, "copy_kind": 1, "src_kind": 2, "dst_kind": 3, "correlation_id": 5,
                 "region": "step", "region_instance": 1, "device": 0, "context": 1, "stream": 7},
            ],
            "memsets": [
                {"start": 1_950, "end": 1_960, "bytes": 64, "memory_kind": 3, "correlation_id": 6, "region": "step/fwd",
                 "region_instance": 2, "device": 0, "context": 1, "stream": 7},
            ],
            "api_calls": [
                {"start": 300, "end": 450, "name": "cudaLaunchKernel", "correlation_id": 1, "thread": 70, "process": 9},
                {"start": 800, "end": 880, "name": "cudaMemcpyAsync", "correlation_id": 5, "thread": 70, "process": 9,
                 "region": "step", "region_instance": 1},
                {"start": 1_200, "end": 1_300, "name": "cudaMemsetAsync", "correlation_id": 6, "thread": 70, "process": 9,
                 "region": "step/fwd", "region_instance": 2},
                {"start": 1_400, "end": 1_600, "name": "cudaLaunchKernel", "correlation_id": 2, "thread": 70, "process": 9,
                 "region": "step/fwd", "region_instance": 2},
                {"start": 1_700, "end": 1_800, "name": "cudaLaunchKernel", "correlation_id": 3, "thread": 70, "process": 9,
                 "region": "step/fwd", "region_instance": 2},
                {"start": 3_000, "end": 3_100, "name": "cuLaunchKernel", "domain": 1, "correlation_id": 4, "thread": 70,
                 "process": 9, "region": "step", "region_instance": 1},
                {"start": 3_200, "end": 3_900, "name": "cudaMalloc", "correlation_id": 7, "thread": 70, "process": 9,
                 "return_value": 2},
            ],
            "synchronizations": [
                {"start": 4_000, "end": 26_000, "type": 3, "context": 1, "stream": 7, "correlation_id": 8},
            ],
            "regions": [
                {"start": 750, "end": 30_000, "name": "step", "path": "step", "instance": 1, "thread": 70},
                {"start": 1_000, "end": 2_500, "name": "fwd", "path": "step/fwd", "instance": 2, "parent": 1, "depth": 1,
                 "thread": 70, "flops": 5e6, "bytes": 1e5},
            ],
            "devices": [
                {"device": 0, "name": "Tesla V100", "compute_capability_major": 7, "num_multiprocessors": 80,
                 "threads_per_warp": 32, "max_warps_per_multiprocessor": 64},
            ],
            "contexts": [{"context": 1, "device": 0}],
        },
        {"device": "sim", "simulated": True, "simulated_chip": "V100", "pid": 9, "clock_pairs": [[0, 10**18]]},
        {"pool_exhausted": 3},
    )  # fmt: skip
