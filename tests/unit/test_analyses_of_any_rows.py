"""Views of the path, waves, properties and series over tables of which nothing fits together, as a damaged file has them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from report_results import config, make_result

from cuptiprof.analysis.dependencies.critical_path import critical_path
from cuptiprof.analysis.dependencies.path_gains import path_limits

_CALLS = (
    "cudaLaunchKernel", "cudaMemcpy", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize",
    "cudaStreamWaitEvent", "cudaEventRecord", "cudaFree", "other",
)  # fmt: skip
_VIEWS = ("critical-path", "critical-path-steps", "waves", "kernels-by-properties", "gpu-series", "communication")


def any_rows(seed: int) -> dict[str, list[dict[str, Any]]]:
    rng = random.Random(seed)
    longest = rng.choice((20, 200, 2**56))

    def span() -> dict[str, int]:
        return {edge: rng.randint(-longest if rng.random() < 0.2 else 0, longest) for edge in ("start", "end")}

    def number(most: int) -> int:
        return 0xFFFFFFFF if rng.random() < 0.05 else rng.randint(0, most)

    def rows(most: int, row: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
        return [row() for _ in range(rng.randint(0, most))]

    def work() -> dict[str, int]:
        return {**span(), "stream": number(4), "device": number(2), "context": number(2), "correlation_id": number(9)}

    tables = {
        "kernels": rows(12, lambda: {
            **work(), "name": rng.choice(("a", "ncclDevKernel_AllReduce(int)")), "thread": number(3), "config": number(2),
            "collective": number(2), "operator_instance": number(3),
        }),
        "memcpys": rows(5, lambda: {**work(), "copy_kind": 1, "src_kind": rng.randint(0, 3), "dst_kind": 3}),
        "memsets": rows(3, work),
        "graph_launches": rows(2, work),
        "api_calls": rows(14, lambda: {**span(), "name": rng.choice(_CALLS), "thread": number(3), "correlation_id": number(9)}),
        "synchronizations": rows(6, lambda: {
            **span(), "type": rng.randint(0, 5), "stream": number(4), "event": number(4), "event_sync_id": number(4), "context": number(2),
            "correlation_id": number(9),
        }),
        "cuda_events": rows(4, lambda: {
            "event": number(4), "event_sync_id": number(4), "correlation_id": number(9), "stream": number(4), "device": number(2),
        }),
        "operators": rows(6, lambda: {
            **span(), "name": rng.choice(("aten::mm", "autograd::engine::evaluate_function: X")), "thread": number(3),
            "instance": rng.randint(1, 6), "backward": rng.randint(0, 1),
        }),
        "regions": rows(4, lambda: {**span(), "name": "r", "path": "r", "thread": number(3), "instance": rng.randint(1, 6)}),
        "devices": [{"device": i, "num_multiprocessors": rng.choice((0, 80)), "compute_capability_major": 8} for i in range(2)],
        "launch_configs": [config((rng.randint(0, 2**31 - 1), rng.randint(0, 9), 1)) for _ in range(2)],
    }  # fmt: skip
    return {name: entries for name, entries in tables.items() if entries}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_any_rows(first: int) -> None:
    for seed in range(first, first + 50):
        result = make_result(any_rows(seed))
        for view in _VIEWS:
            for row in result.report(view).rows:
                times = {k: v for k, v in row.items() if k.endswith("_ns") and k != "start_ns" and v is not None}
                assert all(value >= 0 for value in times.values()), (seed, view, row)
        path = critical_path(result.timed())
        assert (path.start[1:] == path.end[:-1]).all() and (path.end > path.start).all(), seed
        assert (path_limits(path) >= 0).all(), seed
