"""The first look at a run, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import DATA, trace_path
from metric_results import replayed
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
        "busy": 450, "compute": 300, "copies and sets": 50, "communication": 150, "of it beside compute": 50, "idle": 550,
        "before the first work": 100, "after the last work": 300,
        # The gap from 350 to 500: the call that launched what came after it was not recorded.
        "host": 0, "synchronisation": 0, "kernel wait": 150, "other": 0,
    }  # fmt: skip
    assert gpu["idle"] == sum(gpu[name] for name in list(gpu)[6:])
    rows = {row["name"]: row for row in run().overview().rows}
    assert rows["busy"]["percent"] == 45.0 and rows["wall"]["time_ns"] == 1000
    steps = rows["steps"]
    assert (steps["count"], steps["avg_ns"], steps["min_ns"], steps["median_ns"], steps["p95_ns"], steps["max_ns"]) == (
        2, 500, 400, 500, 600, 600,
    )  # fmt: skip
    assert (rows["compute"]["count"], rows["fwd"]["count"]) == (2, 1)


def test_idle_time_by_cause() -> None:
    late = run(
        api_calls=[
            {"name": "cudaLaunchKernel", "start": 0, "end": 20, "correlation_id": 1, "thread": 7},
            {"name": "cudaStreamSynchronize", "start": 310, "end": 360, "thread": 7},
            {"name": "cudaLaunchKernel", "start": 480, "end": 490, "correlation_id": 2, "thread": 7},
        ],
        kernels=[
            {"name": "compute", "start": 100, "end": 300, "correlation_id": 1},
            {"name": "compute", "start": 500, "end": 1000, "correlation_id": 2},
        ],
    )
    found = times(late)
    causes = ("host", "synchronisation", "kernel wait", "other")
    assert [found["GPU", cause] for cause in causes] == [100, 50, 0, 0]


def test_copies_beside_compute() -> None:
    rows = run(memcpys=[{"start": 250, "end": 350, "bytes": 8, "copy_kind": 1}]).overview().rows
    names = [(row["name"], row["depth"], row["time_ns"]) for row in rows if row["block"] == "GPU"]
    at = names.index(("copies and sets", 1, 100))
    assert names[at + 1] == ("of it beside compute", 2, 50)


def test_steps_that_stand_out() -> None:
    ends = (100, 200, 300, 700, 800, 900)
    markers = [
        {"name": f"ProfilerStep#{i}", "category": "step", "start": a, "end": b}
        for i, (a, b) in enumerate(zip((0, *ends), ends, strict=False))
    ]
    out = [
        (row["name"], row["time_ns"], row["depth"])
        for row in run(markers=markers).overview().rows
        if row["block"] == "Run"
    ]
    assert out[2:] == [("step 3 stands out", 400, 1)]
    even = [{**m, "end": m["start"] + 100} for m in markers]
    assert len([row for row in run(markers=even).overview().rows if row["block"] == "Run"]) == 2


def test_operators_that_took_longest() -> None:
    operators = [
        {"name": name, "start": 0, "end": 50 - i, "instance": i + 1, "parent": i, "thread": 7}
        for i, name in enumerate(("aten::linear", "aten::addmm"))
    ]
    kernels = [
        {"name": "compute", "start": 100, "end": 300, "operator_instance": 2},
        {"name": "compute", "start": 400, "end": 450, "operator_instance": 1},
    ]
    rows = [row for row in run(operators=operators, kernels=kernels).overview().rows if "operators" in row["block"]]
    assert [(row["name"], row["time_ns"], row["count"], row["avg_ns"]) for row in rows] == [
        ("aten::addmm", 200, 1, 200), ("aten::linear", 50, 1, 50),
    ]  # fmt: skip
    named = [{"name": "compute", "start": 100, "end": 300, "operator": "aten::linear/aten::addmm"}]
    rows = [row for row in run(kernels=named).overview().rows if "operators" in row["block"]]
    assert [(row["name"], row["time_ns"], row["count"]) for row in rows] == [("aten::addmm", 200, None)]


def test_a_run_without_a_gpu() -> None:
    operators = [{"name": "aten::mm", "start": 0, "end": 50, "instance": 1, "thread": 7}]
    rows = make_result({"operators": operators}).overview().rows
    assert [(row["block"], row["name"], row["time_ns"]) for row in rows] == [
        ("Run", "wall", 50), ("Top operators (host time, own)", "aten::mm", 50),
    ]  # fmt: skip


def test_how_well_the_gpu_was_used() -> None:
    result = cuptiprof.open(DATA / "ranks" / "rank0.json.gz")
    report = result.overview()
    (gpu,) = result.report("gpu").rows
    (use,) = report.content.facts["use"]
    assert use["utilisation_pct"] == gpu["utilisation_pct"] and use["occupancy_pct"] == gpu["occupancy_pct"]
    assert use["sm_efficiency_pct"] == gpu["sm_efficiency_pct"] and use["measured_occupancy_pct"] is None
    assert "GPU 0: utilisation 82.71%, SM efficiency 78.02% (estimated), occupancy 14.05% (estimated)" in str(report)
    counted = replayed()
    (use,) = counted.overview().content.facts["use"]
    # 0.25 for 10,000 ns, 0.5 for 12,345 ns; nothing was counted on the others.
    assert use["measured_occupancy_pct"] == pytest.approx(100 * (0.25 * 10_000 + 0.5 * 12_345) / 22_345)
    assert "(measured, of counted kernels)" in str(counted.overview())


def test_three_sentences_of_advice() -> None:
    report = cuptiprof.open(DATA / "ranks" / "rank0.json.gz").overview()
    said = [line for line in report.content.footers if line[:2] in ("1.", "2.", "3.", "4.")]
    assert len(said) == 3 and said[0].startswith("1. Host waits for the GPU") and "at most 1.0790ms (9.70%)" in said[0]
    assert "What to try first (4 in all: cuptiprof advise):" in report.content.footers
    quiet = make_result({"kernels": [{"name": "a", "start": 0, "end": 100}]}).overview()
    assert not [line for line in quiet.content.footers if "try" in line]


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
        parts = [
            v
            for k, v in gpu.items()
            if k.startswith(("before", "after", "host", "sync", "kernel wait", "other", "why"))
        ]
        assert sum(parts) == gpu["idle"] and min(parts) >= 0
