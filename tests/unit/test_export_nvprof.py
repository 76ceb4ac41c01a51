"""Exports as databases of nvprof: PyTorch's own reader takes them, whatever launched a kernel, and finds what ran in a region or operator."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from report_results import config, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.export.databases.nvprof_schema import KIND


def loaded(result: Result, folder: Path) -> dict[str, list[tuple[int, int]]]:
    """What PyTorch's reader makes of it: name -> start and end of each function; and of its kernels the times."""
    profiler = pytest.importorskip("torch").autograd.profiler
    path = folder / "t.nvprof"
    result.export(path, overwrite=True)
    events = profiler.load_nvprof(str(path))
    return {event.name: [kernel.duration for kernel in event.kernels] for event in events}


def test_pytorch_reads_regions_and_their_kernels(tmp_path: Path) -> None:
    """Kernels of the driver's launches (``sgd``) PyTorch's reader does not look for."""
    assert loaded(training_step(), tmp_path) == {"step": [10_000, 12_345], "fwd": [10_000, 12_345]}


def launched_by(*names: str, kernels_of_each: int = 1, **more: Any) -> Result:
    calls, kernels = [], []
    for i, name in enumerate(names, 1):
        calls.append(
            {
                "name": name,
                "start": 100 * i,
                "end": 100 * i + 10,
                "correlation_id": i,
                "thread": 7,
                "process": 9,
                **more,
            }
        )
        for j in range(kernels_of_each):
            start = 1000 * i + 20 * j
            kernels.append({"name": f"k{i}", "start": start, "end": start + 10, "correlation_id": i, "thread": 7})
    regions = [{"name": "step", "path": "step", "start": 50, "end": 900, "instance": 1, "thread": 7}]
    return make_result(
        {"kernels": kernels, "launch_configs": [config()], "api_calls": calls, "regions": regions}, {"pid": 9}
    )


@pytest.mark.parametrize("name", ["cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "odd"])
def test_any_launch_of_one_kernel(tmp_path: Path, name: str) -> None:
    assert loaded(launched_by(name), tmp_path) == {"step": [10]}


def test_launches_of_graphs_do_no_harm(tmp_path: Path) -> None:
    """Its reader fails at a call with several kernels: the file has such a call as the driver's."""
    result = launched_by("cudaGraphLaunch", "cudaLaunchKernel", kernels_of_each=3)
    assert loaded(result, tmp_path) == {"step": []}
    again = cuptiprof.open(tmp_path / "t.nvprof")
    assert len(again.kernels) == 6 and again.kernels["region"].tolist() == ["step"] * 6
    assert sorted(again.api_calls["name"]) == ["cuGraphLaunch", "cuGraphLaunch"]


def test_calls_within_calls(tmp_path: Path) -> None:
    """The driver's call within the runtime's has its correlation ID, and may stand before it."""
    result = launched_by("cudaLaunchKernelExC")
    inner = {
        "name": "cuLaunchKernelEx",
        "domain": 1,
        "start": 102,
        "end": 108,
        "correlation_id": 1,
        "thread": 7,
        "process": 9,
    }
    outer = {"name": "cudaLaunchKernelExC", "start": 100, "end": 110, "correlation_id": 1, "thread": 7, "process": 9}
    calls = make_result({"api_calls": [inner, outer]}).tables["api_calls"]
    assert loaded(Result({**result.tables, "api_calls": calls}, result.metadata), tmp_path) == {"step": [10]}


def test_operators_are_functions(tmp_path: Path) -> None:
    result = launched_by("cudaLaunchKernel", "cudaLaunchKernel")
    operators = [
        {"name": "aten::linear", "start": 90, "end": 250, "instance": 1, "thread": 7},
        {"name": "aten::mm", "start": 95, "end": 150, "instance": 2, "parent": 1, "thread": 7},
    ]
    with_operators = make_result({"operators": operators})
    tables = {**result.tables, "operators": with_operators.tables["operators"]}
    joined = Result(tables, result.metadata)
    assert loaded(joined, tmp_path) == {"step": [10, 10], "aten::linear": [10, 10], "aten::mm": [10]}


def test_what_has_no_end_is_no_function(tmp_path: Path) -> None:
    regions = [{"name": "open", "path": "open", "start": 5, "end": 90, "instance": 1, "thread": 7, "is_open": 1}]
    markers = [{"name": "here", "start": 20, "end": 20, "category": "nvtx", "thread": 7},
               {"name": "while", "start": 30, "end": 60, "category": "nvtx", "thread": 7, "domain": "d"}]  # fmt: skip
    result = make_result({"regions": regions, "markers": markers}, {"pid": 9})
    assert loaded(result, tmp_path) == {"while": []}
    again = cuptiprof.open(tmp_path / "t.nvprof")
    assert again.regions["is_open"].tolist() == [0, 1] or again.regions["is_open"].tolist() == [1, 0]
    assert again.markers["name"].tolist() == ["here"]


def test_an_empty_run(tmp_path: Path) -> None:
    assert loaded(make_result({}), tmp_path) == {}


@pytest.mark.parametrize("suffix", [".nvprof", ".nvvp"])
def test_times_are_unix_times(tmp_path: Path, suffix: str) -> None:
    training_step().export(tmp_path / f"t{suffix}")
    connection = sqlite3.connect(tmp_path / f"t{suffix}")
    starts = [row[0] for row in connection.execute(f"SELECT start FROM {KIND}CONCURRENT_KERNEL ORDER BY start")]
    assert starts == [10**18 + at for at in (500, 2_000, 13_000, 20_000)]
    kinds = connection.execute(f"SELECT typeof(cacheConfig), typeof(name) FROM {KIND}CONCURRENT_KERNEL").fetchall()
    assert set(kinds) == {("blob", "integer")}
    assert connection.execute("SELECT version FROM Version").fetchall() == [(11,)]


def test_callback_ids_of_names(tmp_path: Path) -> None:
    """Runs from elsewhere have names only."""
    calls = [
        {"name": name, "domain": domain, "start": i, "end": i, "correlation_id": i, "thread": 7, "process": 9}
        for i, (name, domain) in enumerate((("cudaMalloc", 0), ("cuMemAlloc", 1), ("nobody knows", 0)), 1)
    ]
    make_result({"api_calls": calls}).export(tmp_path / "t.nvprof")
    again = cuptiprof.open(tmp_path / "t.nvprof").api_calls
    assert again["name"].tolist() == ["cudaMalloc", "runtime call 0", "cuMemAlloc"]
