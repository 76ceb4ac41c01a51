"""Our analyses find what TensorBoard's plugin for torch.profiler finds in the traces of two ranks."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, trace_path

import cuptiprof
from cuptiprof.analysis.counter_values.launch_sizes import LaunchSizes, estimated_occupancy
from cuptiprof.data.result import Result

PLUGIN: dict[str, dict[str, Any]] = json.loads((DATA / "analyses" / "tensorboard.json").read_text())
ROLES = {
    "Kernel": "kernel", "Memcpy": "memcpy", "Memset": "memset", "Communication": "communication", "Runtime": "runtime",
    "DataLoader": "dataloader", "CpuOp": "cpu_exec", "Other": "other", "Total": "total",
}  # fmt: skip


@pytest.fixture(scope="module", params=list(PLUGIN))
def trace(request: pytest.FixtureRequest) -> tuple[Result, dict[str, Any]]:
    return cuptiprof.open(DATA / "ranks" / f"{request.param}.json.gz"), PLUGIN[request.param]


def test_steps(trace: tuple[Result, dict[str, Any]]) -> None:
    result, plugin = trace
    report = result.report("steps")
    assert [row["step"] for row in report.rows] == plugin["steps_names"]
    found = [{name: row[f"{role}_ns"] for name, role in ROLES.items()} for row in report.rows]
    assert found == [{name: 1000 * time for name, time in costs.items()} for costs in plugin["steps_costs_us"]]
    average = report.content.facts["average"]
    for name, role in ROLES.items():
        assert average[f"{role}_ns"] == pytest.approx(1000 * plugin["avg_costs_us"][name], rel=1e-12)


def test_communication_beside_computation_by_step(trace: tuple[Result, dict[str, Any]]) -> None:
    result, plugin = trace
    found = [
        {
            "computation": row["kernel_ns"],
            "communication": row["all_communication_ns"],
            "overlap": row["overlap_ns"],
            "other": row["total_ns"] + row["overlap_ns"] - row["kernel_ns"] - row["all_communication_ns"],
        }
        for row in result.report("steps").rows
    ]
    assert found == [{name: 1000 * time for name, time in step.items()} for step in plugin["comm_overlap"]]


@lru_cache
def occupancies(trace: Path) -> dict[int, tuple[int, int]]:
    """Correlation ID -> what the file says: est. achieved occupancy and shared memory of a kernel."""
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    kernels = [e["args"] for e in events if e.get("cat") == "kernel" and "est. achieved occupancy %" in e["args"]]
    return {args["correlation"]: (args["est. achieved occupancy %"], args["shared memory"]) for args in kernels}


@pytest.fixture
def as_in_the_file(trace: tuple[Result, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Occupancies of the file, which were made up: 75 % for 1.94 blocks of 512 threads on an SM of 2,048."""
    (rank,) = (name for name, plugin in PLUGIN.items() if plugin is trace[1])
    of_file = occupancies(DATA / "ranks" / f"{rank}.json.gz")
    kernels = trace[0].kernels
    by_shape = np.full(len(trace[0].launch_configs), np.nan)
    by_shape[kernels["config"]] = [of_file[i][0] for i in kernels["correlation_id"].tolist()]
    monkeypatch.setattr(LaunchSizes, "achieved", lambda sizes: by_shape)


@pytest.mark.usefixtures("as_in_the_file")
def test_gpu_summary(trace: tuple[Result, dict[str, Any]]) -> None:
    result, plugin = trace
    (row,) = result.report("gpu").rows
    assert row["utilisation_pct"] == pytest.approx(100 * plugin["gpu_utilization"], rel=1e-12)
    # The file has blocks per SM with six digits, ours are blocks by SMs.
    assert row["sm_efficiency_pct"] == pytest.approx(100 * plugin["est_sm_efficiency"], rel=1e-6)
    assert row["occupancy_pct"] == pytest.approx(plugin["est_occupancy_pct"], rel=1e-12)
    assert (row["name"], row["sms"], row["compute_capability"]) == ("NVIDIA H100 80GB HBM3", 132, "9.0")


@pytest.mark.usefixtures("as_in_the_file")
def test_kernels(trace: tuple[Result, dict[str, Any]]) -> None:
    result, plugin = trace
    report = result.report("kernels", demangle=False)
    found = [
        [
            row["name"], row["tensor_cores"].capitalize(), row["calls"], row["total_ns"] / 1000, round(row["mean_ns"] / 1000),
            row["max_ns"] / 1000, row["min_ns"] / 1000, round(row["blocks_per_sm"], 2), round(row["occupancy_pct"], 2),
        ]
        for row in report.rows
    ]  # fmt: skip
    assert found == plugin["kernel_rows"]
    assert report.content.facts["tensor_core_pct"] == pytest.approx(100 * plugin["tc_time_ratio"], rel=1e-12)


@pytest.mark.parametrize("trace_name", ["train-v100", "alexnet-a100", "simple-add"])
def test_occupancy_is_what_kineto_estimates(trace_name: str) -> None:
    result = cuptiprof.open(trace_path(trace_name))
    found = dict(zip(result.kernels["correlation_id"].tolist(), estimated_occupancy(result).tolist(), strict=True))
    of_file = occupancies(trace_path(trace_name))
    assert len(of_file) > 50
    different = {
        i: (found[i], theirs) for i, (theirs, shared) in of_file.items() if found[i] != theirs and shared <= 48 << 10
    }
    assert not different
