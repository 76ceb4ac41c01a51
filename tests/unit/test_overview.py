"""The first look at a run, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import trace_path
from report_results import make_result

import cuptiprof
from cuptiprof.data.result import Result


def run(**more: Any) -> Result:
    """One GPU, 1,000 ns: two kernels, a copy and a communication that overlaps one of them; two steps."""
    return make_result(
        {
            "kernels": [
                {"name": "compute", "start": 100, "end": 300},
                {"name": "compute", "start": 500, "end": 600},
                {
                    "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                    "start": 550,
                    "end": 700,
                },
            ],
            "memcpys": [{"start": 300, "end": 350, "bytes": 8, "copy_kind": 1}],
            "api_calls": [
                {"name": "cudaLaunchKernel", "start": 0, "end": 20},
                {"name": "cudaStreamSynchronize", "start": 330, "end": 380},
                {"name": "cudaMalloc", "start": 400, "end": 440},
                {"name": "cudaDeviceSynchronize", "start": 690, "end": 710},
            ],
            "regions": [{"name": "fwd", "path": "fwd", "start": 0, "end": 400, "instance": 1}],
            "markers": [
                {"name": "ProfilerStep#0", "category": "step", "start": 0, "end": 400},
                {"name": "ProfilerStep#1", "category": "step", "start": 400, "end": 1000},
            ],
            **more,
        }
    )


def times(result: Result, **options: Any) -> dict[tuple[str, str], int]:
    return {(row["block"], row["name"]): row["time_ns"] for row in result.overview(**options).rows}


def test_where_the_time_went() -> None:
    found = times(run())
    gpu = {name: time for (block, name), time in found.items() if block == "GPU"}
    assert gpu == {
        "busy": 450, "compute": 300, "copies and sets": 50, "communication": 150, "of it beside compute": 50,
        "idle": 550, "before the first work": 100, "after the last work": 300,
        # The gap from 350 to 500: a wait until 380, a call from 400 to 440.
        "host waited for the GPU": 30, "host in other CUDA calls": 40, "host elsewhere": 80,
    }  # fmt: skip
    assert gpu["idle"] == sum(gpu[name] for name in list(gpu)[6:])
    rows = {row["name"]: row for row in run().overview().rows}
    assert rows["busy"]["percent"] == 45.0 and rows["wall"]["time_ns"] == 1000
    steps = rows["steps"]
    assert (steps["count"], steps["avg_ns"], steps["min_ns"], steps["median_ns"], steps["p95_ns"], steps["max_ns"]) == (
        2, 500, 400, 500, 600, 600,
    )  # fmt: skip
    assert (rows["compute"]["count"], rows["fwd"]["count"]) == (2, 1)


def test_two_gpus_share_the_wall_time() -> None:
    kernels = [{"name": "a", "start": 0, "end": 100, "device": 0}, {"name": "b", "start": 50, "end": 100, "device": 1}]
    rows = [row for row in make_result({"kernels": kernels}).overview().rows if row["name"] == "busy"]
    assert [(row["block"], row["time_ns"], row["percent"]) for row in rows] == [
        ("GPU 0", 100, 50.0),
        ("GPU 1", 50, 25.0),
    ]
    names = [row["name"] for row in make_result({"kernels": kernels}).overview().rows]
    assert "why is not known: no API calls" in names


def test_limits_and_what_was_lost() -> None:
    result = cuptiprof.open(trace_path("train-v100"))
    text = result.overview(limit=2).to("text")
    assert (
        "more kernels: --view summary" in text
        and "more regions: --view regions" in text
        and "Nothing was lost." in text
    )
    assert sum(row["block"] == "Top kernels" for row in result.overview(limit=2).rows) == 2
    lossy = Result(result.tables, result.metadata, {"pool_exhausted": 3})
    assert lossy.overview().to("text").rstrip().endswith("Lost: 3 pool_exhausted")
    assert str(result.report()) == str(result.overview())


@pytest.mark.parametrize("trace", ["train-v100", "alexnet-a100", "triton-a100"])
def test_recorded_runs_add_up(trace: str) -> None:
    result = cuptiprof.open(trace_path(trace))
    rows = result.overview(limit=0).rows
    wall = result.overview().content.facts["wall_ns"]
    for block in {row["block"] for row in rows if row["block"].startswith("GPU")}:
        gpu = {row["name"]: row["time_ns"] for row in rows if row["block"] == block}
        assert gpu["busy"] + gpu["idle"] == wall
        assert max(gpu["compute"], gpu["copies and sets"], gpu["communication"]) <= gpu["busy"]
        parts = [v for k, v in gpu.items() if k.startswith(("before", "after", "host", "why"))]
        assert sum(parts) == gpu["idle"] and min(parts) >= 0
