"""Analyses of GPU time against numbers worked out by hand, and of what is odd."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from report_results import config, make_result

import cuptiprof
from cuptiprof.analysis.arrays import intervals
from cuptiprof.analysis.arrays.aggregate import union
from cuptiprof.analysis.arrays.intervals import time_by_set
from cuptiprof.analysis.utilization import gpu_figures
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ANALYSES = (
    "temporal", "kernel-types", "overlap", "idle", "launches", "queue", "queue-series", "bandwidth", "bandwidth-series",
    "steps", "gpu", "kernels", "kernels-by-properties", "waves",
    "critical-path", "critical-path-steps", "gpu-series",
    "communication",
)  # fmt: skip


def kernel(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"name": "compute", "start": start, "end": end, "stream": 7, **more}


def rows(tables: dict[str, list[dict[str, Any]]], view: str, **metadata: Any) -> list[dict[str, Any]]:
    return make_result(tables, metadata).report(view).rows


def test_what_runs_at_once_counts_for_each_type() -> None:
    tables = {
        "kernels": [kernel(0, 100), kernel(50, 150, stream=9), kernel(80, 200, name=NCCL)],
        "memcpys": [{"start": 190, "end": 250, "copy_kind": 1}, {"start": 300, "end": 310, "copy_kind": 2}],
    }
    found = {row["kernel_type"]: row["sum_ns"] for row in rows(tables, "kernel-types")}
    assert found == {
        "COMPUTATION": 80, "COMPUTATION overlapping COMMUNICATION": 70, "COMMUNICATION": 40,
        "COMMUNICATION overlapping MEMORY": 10, "MEMORY": 60,
    }  # fmt: skip
    (temporal,) = rows(tables, "temporal", rank=3)
    assert [temporal[key] for key in ("rank", "device", "idle_ns", "compute_ns", "non_compute_ns", "kernel_ns")] == [
        3, 0, 50, 150, 110, 310,
    ]  # fmt: skip
    assert temporal["compute_pct"] == pytest.approx(100 * 150 / 310)
    (overlap,) = rows(tables, "overlap")
    assert (overlap["overlap_ns"], overlap["communication_ns"]) == (70, 120)
    assert overlap["comp_comm_overlap_pct"] == pytest.approx(100 * 70 / 120)


def test_each_gpu_has_its_own_time() -> None:
    tables = {"kernels": [kernel(0, 100), kernel(1_000, 1_010, device=1)]}
    found = [(row["device"], row["idle_ns"], row["kernel_ns"]) for row in rows(tables, "temporal")]
    assert found == [(0, 0, 100), (1, 0, 10)]
    assert [row["sum_ns"] for row in rows(tables, "kernel-types")] == [110]


def test_ranks_are_rows_of_one_report() -> None:
    runs = [
        make_result({"kernels": [kernel(0, 10 * (rank + 1))]}, {"rank": rank}, {"unknown_records": rank})
        for rank in range(3)
    ]
    report = runs[0].report("temporal", ranks=runs[1:])
    assert [(row["rank"], row["kernel_ns"]) for row in report.rows] == [(0, 10), (1, 20), (2, 30)]
    assert report.losses["unknown_records"] == 3
    assert [row["sum_ns"] for row in runs[0].report("kernel-types", ranks=runs[1:]).rows] == [60]
    with pytest.raises(ResultError, match="of one rank"):
        runs[0].report("summary", ranks=runs[1:])


def test_idle_time_has_a_cause() -> None:
    tables = {
        "kernels": [
            kernel(0, 100, correlation_id=1),
            kernel(5_000, 5_100, correlation_id=2),  # launched at 3,000: late
            kernel(5_200, 5_300, correlation_id=3),  # launched in time, soon
            kernel(50_000, 50_100, correlation_id=4),  # launched in time, not soon
            kernel(50_100, 50_200),  # its launch was not recorded
        ],
        "api_calls": [
            {"name": "cudaLaunchKernel", "start": 0, "end": 10, "correlation_id": 1},
            {"name": "cudaLaunchKernel", "start": 3_000, "end": 3_010, "correlation_id": 2},
            {"name": "cudaLaunchKernel", "start": 3_020, "end": 3_030, "correlation_id": 3},
            {"name": "cudaLaunchKernel", "start": 3_040, "end": 3_050, "correlation_id": 4},
            {"name": "cudaDeviceSynchronize", "start": 50, "end": 400, "correlation_id": 5},
        ],
    }
    found = {row["idle_category"]: row for row in rows(tables, "idle")}
    assert {cause: (row["idle_ns"], row["sync_ns"], row["gaps"]) for cause, row in found.items()} == {
        "host_wait": (4_900, 300, 1), "kernel_wait": (100, 0, 2), "other": (44_700, 0, 1),
    }  # fmt: skip
    assert sum(row["idle_ratio"] for row in found.values()) == pytest.approx(1)
    report = make_result(tables).report("idle")
    assert report.content.facts["unknown_launches"] == 1 and "Of 1 of 4 gaps" in str(report)
    # A driver call within the runtime call that has its ID does not make the launch late.
    inner = {"name": "cuLaunchKernel", "start": 3_005, "end": 3_008, "correlation_id": 3, "domain": 1}
    tables["api_calls"].insert(0, inner)
    assert rows(tables, "idle") == [*found.values()]


def test_work_that_overlaps_on_a_stream_makes_no_negative_idle_time() -> None:
    tables = {"kernels": [kernel(0, 1_000), kernel(100, 200), kernel(300, 400), kernel(1_500, 1_600)]}
    assert sum(row["idle_ns"] for row in rows(tables, "idle")) == 500
    assert all(row["sync_ns"] is None for row in rows(tables, "idle"))  # no calls: nobody knows


@pytest.mark.parametrize("view", ANALYSES)
def test_odd_results(view: str) -> None:
    assert rows({}, view) == []
    found = rows({"api_calls": [{"name": "cudaMalloc", "start": 0, "end": 5}]}, view)
    hosts = [row["time_ns" if view == "critical-path" else "total_ns"] for row in found]
    of_host = ("steps", "critical-path", "critical-path-steps")
    assert hosts == ([5] if view in of_host else [])  # what the host did is a step, and all that a path goes through
    assert rows({"kernels": [kernel(0, 0)]}, view) == []  # no times
    for work in ([kernel(5, 5)], [kernel(10, 5)], [kernel(2**61, 2**61 + 1), kernel(-(2**61), 1 - 2**61)]):
        call = {"name": "cudaLaunchKernel", "start": 9, "end": 3, "correlation_id": 1}
        work[0]["correlation_id"] = 1
        tables = {"kernels": work, "memcpys": [{"start": 7, "end": 7, "copy_kind": 1}], "api_calls": [call]}
        for row in rows(tables, view):
            assert all(value >= 0 for key, value in row.items() if key.endswith("_ns") and value is not None)
        for form in ("text", "markdown", "csv", "json"):
            make_result(tables).report(view).to(form)


def test_sweep_against_marking_every_instant() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        marked, parts = np.zeros(60, np.int64), []
        for i in range(3):
            start = np.sort(rng.integers(0, 50, 6))
            end = start + rng.integers(0, 9, 6)
            parts.append(union(np.zeros(6, np.int64), start, end))
            mine = np.zeros(60, bool)
            for a, b in zip(start, end, strict=True):
                mine[a:b] = True
            marked += mine << i
        expected = {which: int((marked == which).sum()) for which in range(1, 8) if (marked == which).any()}
        assert time_by_set(parts) == expected


def many(kernels: int) -> Result:
    """Kernels of three streams with their launches, in order."""
    strings = Strings()
    names = [strings.code(name) for name in ("gemm", "relu", NCCL)]
    n = np.arange(kernels)
    start = n * 1_000 + 5_000
    columns = {
        "start": start,
        "end": start + 900,
        "name": np.asarray(names)[n % 3],
        "stream": n % 3 + 7,
        "correlation_id": n + 1,
    }
    calls = {"start": n * 1_000, "end": n * 1_000 + 400, "name": np.full(kernels, strings.code("cudaLaunchKernel")),
             "correlation_id": n + 1}  # fmt: skip
    config = {"grid_x": [216], "grid_y": [1], "grid_z": [1], "block_x": [256], "block_y": [1], "block_z": [1]}
    return Result({
        "launch_configs": Table.from_columns("launch_configs", config, strings),
        "kernels": Table.from_columns("kernels", columns, strings),
        "api_calls": Table.from_columns("api_calls", calls, strings),
    })  # fmt: skip


@pytest.mark.parametrize("view", ANALYSES)
def test_time_is_linear(view: str) -> None:
    def seconds(result: Result) -> float:
        best = 1e9
        for _ in range(3):
            begin = time.thread_time()
            result.report(view, limit=10)
            best = min(best, time.thread_time() - begin)
        return best

    small, large = seconds(many(100_000)), seconds(many(1_000_000))
    assert large < max(25 * small, 0.5)


LAUNCHED = {
    "kernels": [
        kernel(100, 900, correlation_id=1),
        kernel(900, 1_000, correlation_id=2),
        kernel(150, 160, correlation_id=3, stream=9),
        kernel(160, 190, correlation_id=3, stream=9),  # of the same graph
        kernel(5, 15, correlation_id=4, stream=9),  # before its call, as clocks have it
        kernel(2_000, 2_100),  # nobody knows who launched it
    ],
    "memcpys": [{"start": 30, "end": 60, "correlation_id": 5, "copy_kind": 1, "bytes": 30, "stream": 7}],
    "api_calls": [
        {"name": "cudaLaunchKernel", "start": 10, "end": 50, "correlation_id": 1},
        {"name": "cuLaunchKernelEx", "start": 60, "end": 80, "correlation_id": 2},
        {"name": "cudaGraphLaunch", "start": 85, "end": 95, "correlation_id": 3},
        {"name": "cudaLaunchKernel", "start": 20, "end": 25, "correlation_id": 4},
        {"name": "cudaMemcpy", "start": 26, "end": 62, "correlation_id": 5},
        {"name": "cudaLaunchKernel", "start": 1_000_000, "end": 1_000_005, "correlation_id": 6},  # its kernel did not come
    ],
}  # fmt: skip


def test_launches_by_call() -> None:
    report = make_result(LAUNCHED).report("launches")
    keys = ("correlation", "cpu_duration_ns", "gpu_duration_ns", "launch_delay_ns", "stream", "name")
    assert [tuple(row[key] for key in keys) for row in report.rows] == [
        (2, 20, 100, 820, 7, "cuLaunchKernelEx"),
        (3, 10, 40, 55, 9, "cudaGraphLaunch"),
        (1, 40, 800, 50, 7, "cudaLaunchKernel"),
        (4, 5, 10, 0, 9, "cudaLaunchKernel"),
    ]
    facts = {"launches": 4, "short_kernels": 0, "runtime_outliers": 0, "delay_outliers": 0}
    assert report.content.facts == facts
    assert [row["correlation"] for row in make_result(LAUNCHED).report("launches", limit=2).rows] == [2, 3]


def test_queue_is_never_shorter_than_nothing() -> None:
    found = {row["stream"]: row for row in rows(LAUNCHED, "queue")}
    # Stream 7: 1 at 10, 2 at 60, 1 at 100, 0 at 900. Stream 9: at 20 there and gone, 1 at 85, 0 at 150.
    assert [found[7][key] for key in ("count", "mean", "minimum", "maximum")] == [4, 1.0, 0, 2]
    assert [found[9][key] for key in ("count", "mean", "minimum", "maximum")] == [4, 0.5, 0, 1]
    series = [(row["stream"], row["time_ns"], row["queue_length"]) for row in rows(LAUNCHED, "queue-series")]
    assert series == [
        (7, 5, 1), (7, 55, 2), (7, 95, 1), (7, 895, 0), (9, 15, 1), (9, 15, 0), (9, 80, 1), (9, 145, 0),
    ]  # fmt: skip


def test_time_that_a_queue_was_full() -> None:
    n = np.arange(3_000)
    strings = Strings()
    result = Result({
        "kernels": Table.from_columns(
            "kernels", {"start": 100_000 + 10 * n, "end": 100_005 + 10 * n, "correlation_id": n + 1}, strings
        ),
        "api_calls": Table.from_columns(
            "api_calls",
            {"start": n, "end": n + 1, "name": np.full(3_000, strings.code("cudaLaunchKernel")), "correlation_id": n + 1},
            strings,
        ),
    })  # fmt: skip
    (row,) = result.report("queue").rows
    # 1,024 are in it from 1,023 on, until 1,977 have begun: at 100,000 + 10 * 1,976.
    assert (row["maximum"], row["blocked_ns"]) == (3_000, 100_000 + 19_760 - 1_023)


def test_bandwidth_over_time() -> None:
    copy = {"copy_kind": 1, "bytes": 1_000}
    tables = {
        "memcpys": [
            {"start": 0, "end": 100, **copy},  # 10 GB/s
            {"start": 50, "end": 150, **copy},
            {"start": 150, "end": 250, **copy},
            {"start": 300, "end": 300, **copy},  # takes no time, nobody knows how fast
            {"start": 10_000, "end": 10_000, "bandwidth": 3.5, **copy},  # of a file of whole microseconds
            {"start": 0, "end": 10, "copy_kind": 2, "bytes": 10},
        ],
        "memsets": [{"start": 5, "end": 7, "bytes": 8}],
    }
    series = [
        (r["time_ns"], r["bytes_per_s"]) for r in rows(tables, "bandwidth-series") if r["copy_kind"] == "Memcpy HtoD"
    ]
    assert series == [(0, 1e10), (50, 2e10), (100, 1e10), (150, 0), (150, 1e10), (250, 0), (10_000, 3.5e9), (11_000, 0)]
    found = {row["copy_kind"]: row for row in rows(tables, "bandwidth")}
    assert [(kind, row["copies"], row["bytes"], row["time_ns"]) for kind, row in found.items()] == [
        ("Memcpy HtoD", 5, 5_000, 300), ("Memcpy DtoH", 1, 10, 10), ("Memset", 1, 8, 2),
    ]  # fmt: skip
    assert found["Memcpy HtoD"]["mean_bytes_per_s"] == pytest.approx((1e10 + 2e10 + 1e10 + 1e10 + 3.5e9) / 5)
    assert found["Memset"]["std_bytes_per_s"] is None and found["Memset"]["maximum_bytes_per_s"] == 4e9


def test_steps_reach_to_the_end_of_their_work() -> None:
    calls = [
        {"name": "cudaLaunchKernel", "start": at, "end": at + 10, "correlation_id": i + 1, "thread": 1}
        for i, at in enumerate((50, 110, 220, 320))
    ]
    tables = {
        "kernels": [
            kernel(60, 105, correlation_id=1),  # launched before the first step, ended before its first kernel
            kernel(150, 260, correlation_id=2),
            kernel(260, 290, correlation_id=3, name=NCCL, stream=9),
            kernel(400, 450, correlation_id=4),
        ],
        "memcpys": [{"start": 255, "end": 275, "copy_kind": 1}],
        "api_calls": calls,
        "operators": [
            {"name": "nccl:all_reduce", "start": 215, "end": 235, "instance": 1},
            {"name": "aten::mm", "start": 100, "end": 125, "instance": 2},
            {
                "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                "start": 126,
                "end": 140,
                "instance": 3,
            },
        ],
        "regions": [
            {"name": f"ProfilerStep#{i}", "path": f"ProfilerStep#{i}", "start": at, "end": at + 95, "instance": i}
            for i, at in ((1, 100), (2, 200), (3, 300), (4, 400))
        ],
    }
    found = rows(tables, "steps")
    # Step 1 begins at 105, after the work before it, and ends with its kernel; step 4 launched nothing.
    assert [(row["step"], row["total_ns"]) for row in found] == [("1", 155), ("2", 35), ("3", 150)]
    keys = ("kernel_ns", "memcpy_ns", "communication_ns", "runtime_ns", "dataloader_ns", "cpu_exec_ns", "other_ns")
    assert [[row[key] for key in keys] for row in found] == [
        [110, 0, 0, 10, 14, 10, 11],
        [0, 15, 20 - 5, 0, 0, 0, 5],
        [50, 0, 0, 10, 0, 0, 90],
    ]
    for row in found:
        assert row["total_ns"] == sum(row[key] for key in row if key.endswith("_ns") and key not in (
            "total_ns", "all_communication_ns", "overlap_ns"))  # fmt: skip


def test_the_last_step_was_cut_off() -> None:
    step = [{"name": f"ProfilerStep#{i}", "category": "step", "start": 100 * i, "end": 100 * i + 100} for i in range(3)]
    at = [10, 20, 30, 110, 120, 130, 210]
    tables = {
        "markers": step,
        "kernels": [kernel(t + 5, t + 8, correlation_id=i + 1) for i, t in enumerate(at)],
        "api_calls": [
            {"name": "cudaLaunchKernel", "start": t, "end": t + 2, "correlation_id": i + 1} for i, t in enumerate(at)
        ],
    }
    assert [row["step"] for row in rows(tables, "steps")] == ["0", "1"]
    tables["kernels"] += [kernel(t + 5, t + 8, correlation_id=i + 8) for i, t in enumerate((220, 230))]
    tables["api_calls"] += [
        {"name": "cudaLaunchKernel", "start": t, "end": t + 2, "correlation_id": i + 8}
        for i, t in enumerate((220, 230))
    ]
    assert [row["step"] for row in rows(tables, "steps")] == ["0", "1", "2"]


A100 = {
    "device": 0, "name": "NVIDIA A100-SXM4-80GB", "compute_capability_major": 8, "compute_capability_minor": 0,
    "num_multiprocessors": 108, "global_memory_size": 80 << 30,
}  # fmt: skip


def test_gpu_figures_of_two_kernels_at_once() -> None:
    tables = {
        "launch_configs": [
            config((54, 1, 1), (1024, 1, 1)),  # half of the SMs
            config((81, 1, 1), (256, 1, 1)),  # three quarters
            config((108, 1, 1), (128, 1, 1), registers_per_thread=230, dynamic_shared_memory=81_920),
        ],
        "kernels": [
            kernel(0, 100, config=0),
            kernel(50, 150, config=1, stream=9),
            kernel(300, 400, config=2),
        ],
        "devices": [A100],
    }
    (row,) = rows(tables, "gpu")
    assert row["utilisation_pct"] == pytest.approx(100 * 250 / 400)
    assert row["sm_efficiency_pct"] == pytest.approx(100 * (50 * 0.5 + 50 * 1 + 50 * 0.75 + 100 * 1) / 400)
    # 0.5 x 1024 / 2048 = 25 %, 0.75 x 256 / 2048 = 9.4, rounded 9; one block of 128 / 2048 = 6.25, rounded 6.
    assert row["occupancy_pct"] == pytest.approx((25 + 9 + 6) / 3)
    assert (row["dram_bytes_per_s"], row["link_bytes_per_s"], row["sms"]) == (2.039e12, 31.5e9, 108)
    (row,) = rows(tables, "kernels")
    assert (row["blocks_per_sm"], row["occupancy_pct"]) == pytest.approx(((0.5 + 0.75 + 1) / 3, 40 / 3))


def test_figures_of_gpus_that_nobody_described() -> None:
    tables = {"kernels": [kernel(0, 100), kernel(0, 50, device=3)]}
    found = rows(tables, "gpu")
    assert [(row["device"], row["utilisation_pct"], row["sm_efficiency_pct"]) for row in found] == [
        (0, 100, None),
        (3, 50, None),
    ]
    (row,) = rows(tables, "kernels")
    assert (row["blocks_per_sm"], row["occupancy_pct"], row["tensor_cores"], row["tensor_by"]) == (
        None,
        None,
        "no",
        "name",
    )
    huge = config((2**31 - 1, 65_535, 65_535), (1024, 1, 1))
    (row,) = rows({"kernels": [kernel(0, 100)], "launch_configs": [huge], "devices": [A100]}, "gpu")
    assert row["sm_efficiency_pct"] == 100 and row["occupancy_pct"] == 100


def test_a_folder_of_ranks_is_one_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, traces = tmp_path / "runs", tmp_path / "traces"
    runs.mkdir()
    traces.mkdir()
    for rank in (0, 1):
        file = DATA / "ranks" / f"rank{rank}.json.gz"
        shutil.copy(file, traces / f"worker{9 - rank}.pt.trace.json.gz")  # by rank, not by name
        cuptiprof.open(file).save(runs / f"rank{rank}.cuptiprof")
    found = []
    for folder in (runs, traces):
        assert main(["report", str(folder), "--view", "temporal", "--format", "json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert [(row["rank"], row["kernel_ns"]) for row in found[0]["rows"]] == [(0, 10_951_000), (1, 12_209_000)]
    assert found[0]["rows"] == found[1]["rows"]
    assert [line for line in found[1]["header"] if "worker" in line] == [
        "imported from worker9.pt.trace.json.gz", "imported from worker8.pt.trace.json.gz",
    ]  # fmt: skip
    # What is of one rank comes rank by rank.
    assert main(["report", str(traces), "--view", "summary", "--view", "overlap", "--limit", "1"]) == 0
    text = capsys.readouterr().out
    assert text.count("Profiling result") == 2 and text.count("Hidden(%)") == 1


def test_sweeps_in_parts_are_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    start = np.sort(random.integers(0, 10_000, 400))
    kernels = [
        kernel(int(a), int(a + b), config=int(c))
        for a, b, c in zip(start, random.integers(0, 300, 400), random.integers(0, 3, 400), strict=True)
    ]
    random.shuffle(kernels)
    tables = {
        "kernels": kernels,
        "launch_configs": [config((size, 1, 1)) for size in (3, 40, 500)],
        "devices": [{"device": 0, "num_multiprocessors": 108, "compute_capability_major": 8}],
    }
    whole = {view: rows(tables, view) for view in ("gpu", "temporal")}
    # By hand: what each microsecond's kernels fill.
    filled = np.zeros(10_400)
    for row in kernels:
        filled[row["start"] : row["end"]] += (3, 40, 500)[row["config"]]
    span = max(row["end"] for row in kernels) - min(row["start"] for row in kernels)
    (gpu,) = whole["gpu"]
    assert gpu["sm_efficiency_pct"] == pytest.approx(100 * np.minimum(filled, 108).sum() / 108 / span, rel=1e-12)
    for at_once in (1, 7):
        monkeypatch.setattr(gpu_figures, "_AT_ONCE", at_once)
        monkeypatch.setattr(intervals, "_AT_ONCE", at_once)
        assert {view: rows(tables, view) for view in whole} == whole
