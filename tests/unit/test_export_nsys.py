"""Exports as databases of Nsight Systems: the reports of ``nsys stats`` find our own reports' numbers in them; nothing in a name harms them."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import trace_path
from nsys_queries import QUERIES, opened, report
from report_results import HOSTILE, config, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.text.names import display_name

DIRECTIONS = {"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD", "Peer-to-Peer": "PtoP"}
RUNS = ["training step", "train-v100", "alexnet-a100", "triton-a100"]


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    result = training_step() if request.param == "training step" else cuptiprof.open(trace_path(request.param))
    path = tmp_path_factory.mktemp("nsys") / "report.sqlite"
    result.export(path)
    return result, path


def shown(name: str) -> str:
    for theirs, ours in DIRECTIONS.items():
        name = name.replace(f"memcpy {theirs}]", f"memcpy {ours}]")
    return name


def summary(result: Result, block: str) -> dict[str, tuple[int, int, float, int, int]]:
    """Total, count, mean, least and most by name."""
    data = result.report("summary").content.data
    keys = ("time_ns", "calls", "avg_ns", "min_ns", "max_ns")
    return {
        data["name"][i]: tuple(data[key][i] for key in keys)  # type: ignore[misc]
        for i in range(len(data["name"]))
        if data["block"][i] == block
    }


def statistics_of(rows: list[sqlite3.Row]) -> dict[str, tuple[int, int, float, int, int]]:
    return {shown(row["name"]): tuple(row[key] for key in ("total", "count", "avg", "min", "max")) for row in rows}


def test_sums_of_kernels_copies_and_calls_are_the_summary(run: tuple[Result, Path]) -> None:
    result, path = run
    ours = summary(result, "GPU activities")
    kernels = statistics_of(report(path, "cuda_gpu_kern_sum"))
    work = statistics_of(report(path, "cuda_gpu_mem_time_sum")) if len(result.memcpys) else {}
    found = kernels | work
    assert found.keys() == ours.keys()
    for name, (total, count, mean, least, most) in found.items():
        assert (total, count, least, most) == (*ours[name][:2], *ours[name][3:]), name
        assert mean == pytest.approx(ours[name][2]), name
    calls = statistics_of(report(path, "cuda_api_sum"))
    of_calls = summary(result, "API calls")
    assert calls.keys() == of_calls.keys()
    assert all(calls[name][:2] == of_calls[name][:2] for name in calls)


def test_medians_and_deviations(run: tuple[Result, Path]) -> None:
    result, path = run
    times = defaultdict(list)
    for name, duration in zip(result.kernels["name"].tolist(), result.kernels["duration"].tolist(), strict=True):
        times[display_name(name)].append(duration)
    for row in report(path, "cuda_gpu_kern_sum"):
        assert row["med"] == statistics.median(times[row["name"]])
        if row["count"] > 1:
            assert row["stddev"] == pytest.approx(statistics.stdev(times[row["name"]]))


def test_kernels_by_their_grid_and_by_their_other_names(run: tuple[Result, Path]) -> None:
    result, path = run
    kernels = result.kernels
    keys = [kernels[f"{what}_{axis}"].tolist() for what in ("grid", "block") for axis in "xyz"]
    expected: dict[Any, list[int]] = defaultdict(list)
    for name, duration, *sizes in zip(kernels["name"].tolist(), kernels["duration"].tolist(), *keys, strict=True):
        expected[(display_name(name), *sizes)].append(duration)
    rows = report(path, "cuda_gpu_kern_gb_sum")
    assert {tuple(row)[:7]: (row["total"], row["count"]) for row in rows} == {
        key: (sum(times), len(times)) for key, times in expected.items()
    }
    mangled = {row["name"]: row["count"] for row in report(path, "cuda_gpu_kern_sum:mangled")}
    assert mangled == {name: kernels["name"].tolist().count(name) for name in set(kernels["name"])}
    assert sum(row["count"] for row in report(path, "cuda_gpu_kern_sum:base")) == len(kernels)
    assert all("<" not in row["name"] for row in report(path, "cuda_gpu_kern_sum:base"))


def test_sizes_of_copies_and_sets(run: tuple[Result, Path]) -> None:
    result, path = run
    if not len(result.memcpys):
        assert "CUPTI_ACTIVITY_KIND_MEMCPY" not in tables(path)
        return
    total = sum(row["total"] for row in report(path, "cuda_gpu_mem_size_sum"))
    assert total == int(result.memcpys["bytes"].sum()) + int(result.memsets["bytes"].sum())


def test_the_trace_is_ours(run: tuple[Result, Path]) -> None:
    result, path = run
    if not len(result.memcpys):
        return
    ours = result.report("gpu-trace").content
    rows = report(path, "cuda_gpu_trace")
    assert len(rows) == len(ours)
    at = opened(path).execute("SELECT min(start) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()[0]
    assert at >= 0

    def key(row: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(map(str, row))

    first = min(ours.data["start_ns"][i] for i in range(len(ours)))
    theirs_first = min(row["start"] for row in rows)
    theirs = [
        (row["start"] - theirs_first, row["duration"], row["correlationId"] or 0, row["registersPerThread"], row["bytes"],
         row["device"], row["contextId"], row["streamId"], shown(row["name"])) for row in rows
    ]  # fmt: skip
    columns = ("start_ns", "duration_ns", "correlation", "registers", "bytes", "device", "context", "stream", "name")
    mine = [
        tuple(ours.data[c][i] - first if c == "start_ns" else ours.data[c][i] for c in columns) for i in range(len(ours))
    ]  # fmt: skip
    assert sorted(map(key, theirs)) == sorted(map(key, mine))


def test_queues_of_launches(run: tuple[Result, Path]) -> None:
    result, path = run
    kernels, calls = result.kernels, result.api_calls
    row_of = {int(c): i for i, c in enumerate(calls["correlation_id"].tolist())}
    expected: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for i, correlation in enumerate(kernels["correlation_id"].tolist()):
        if correlation in row_of:
            call = row_of[correlation]
            sums = expected[display_name(kernels["name"][i]), calls["name"][call]]
            queued = int(kernels["start"][i]) - int(calls["end"][call])
            for j, value in enumerate((1, calls["duration"][call], kernels["duration"][i], max(queued, 0))):
                sums[j] += int(value)
    rows = report(path, "cuda_kern_exec_sum")
    assert {
        (r["name"], r["api"]): [r["count"], r["api_time"], r["kernel_time"], r["queue_time"] or 0] for r in rows
    } == dict(expected)


def test_ranges_on_the_gpu(run: tuple[Result, Path]) -> None:
    """What a region's ranges project to is what our own report says of its kernels and copies."""
    result, path = run
    if not len(result.regions) or not len(result.memcpys):
        return
    ours = result.report("regions").content.data
    by_path = {path: i for i, path in enumerate(ours["path"])}
    names = result.regions["name"].tolist()
    rows = {row["name"]: row for row in report(path, "nvtx_gpu_proj_sum")}
    seen = 0
    for row in range(len(result.regions)):
        path_ = result.regions["path"][row]
        at = by_path.get(path_)
        if at is None or names.count(names[row]) > 1:
            continue
        work = ours["kernels"][at] + ours["copies"][at]
        if not work or result.regions["thread"][row] not in set(result.kernels["thread"].tolist()):
            continue
        found = rows[f"cuptiprof:{names[row]}"]
        assert found["operations"] == work, path_
        seen += 1
    assert seen or run[0].metadata.get("origin"), "the hand-made run has two regions with work"


def test_kernels_of_ranges(tmp_path: Path) -> None:
    training_step().export(tmp_path / "t.sqlite")
    rows = [tuple(row) for row in report(tmp_path / "t.sqlite", "nvtx_kern_sum")]
    gemm = "gemm(float*, float*, int)"
    assert rows == [
        ("cuptiprof:fwd", gemm, 1, 2, 22_345),
        ("cuptiprof:step", gemm, 1, 2, 22_345),
        ("cuptiprof:step", "sgd", 1, 1, 1_000),
    ]


def tables(path: Path) -> set[str]:
    return {row[0] for row in opened(path).execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_an_empty_run_has_no_tables_of_work(tmp_path: Path) -> None:
    make_result({}).export(tmp_path / "empty.sqlite")
    found = tables(tmp_path / "empty.sqlite")
    assert "StringIds" in found and not {name for name in found if name.startswith("CUPTI_ACTIVITY")}
    again = cuptiprof.open(tmp_path / "empty.sqlite")
    assert all(not len(table) for table in again.tables.values())


def test_hostile_names(tmp_path: Path) -> None:
    """SQL, formulas, half a surrogate pair, a null character, 64 KB: as texts, and back."""
    names = [HOSTILE, "'); DROP TABLE StringIds; --", "\ud800half", "a\0b", "x" * 65_536, "", "\u202eevil", "@SUM(A1)"]
    kernels = [{"name": n, "start": 10 * i, "end": 10 * i + 5, "correlation_id": i + 1} for i, n in enumerate(names, 1)]
    regions = [{"name": n, "path": n, "start": 10 * i, "end": 10 * i + 9, "instance": i, "thread": 1, "is_open": i % 2} for i, n in enumerate(names, 1)]  # fmt: skip
    devices = [{"device": 0, "name": HOSTILE}]
    result = make_result({"kernels": kernels, "regions": regions, "devices": devices}, {"simulated": True})
    for suffix in (".sqlite", ".nvprof"):
        path = tmp_path / f"hostile{suffix}"
        result.export(path)
        again = cuptiprof.open(path)
        expected = [n.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00") for n in names]
        assert again.kernels["name"].tolist() == expected
        assert sorted(again.regions["name"]) == sorted(expected)
        assert again.simulated and again.devices["name"].tolist() == [HOSTILE]


def test_largest_numbers(tmp_path: Path) -> None:
    """Addresses use all 64 bits, threads all 32."""
    top = 2**64 - 1
    rows = [
        {
            "timestamp": 1,
            "address": top,
            "bytes": 2**40,
            "operation": 1,
            "memory_kind": 3,
            "stream": 2**32 - 1,
            "correlation_id": 1,
        }
    ]
    calls = [
        {"start": 1, "end": 2, "name": "cudaMalloc", "thread": t, "process": 2**22, "correlation_id": i + 1}
        for i, t in enumerate((2**32 - 1, 2**31, 77))
    ]
    result = make_result({"memory": rows, "api_calls": calls}, {"pid": 2**22})  # fmt: skip
    result.export(tmp_path / "t.sqlite")
    again = cuptiprof.open(tmp_path / "t.sqlite")
    assert again.memory["address"].tolist() == [top] and again.memory["stream"].tolist() == [2**32 - 1]
    # 24 bits are what nsys has for a thread: two that do not fit stay apart.
    assert len(set(again.api_calls["thread"])) == 3 and 77 in again.api_calls["thread"]
    assert set(again.api_calls["process"]) == {2**22}


def test_what_nobody_knows_is_null(tmp_path: Path) -> None:
    kernels = [
        {"name": "k", "start": 1, "end": 2},
        {"name": "k", "start": 3, "end": 4, "graph_node_id": 5, "graph_id": 6},
    ]
    make_result({"kernels": kernels, "launch_configs": [config()]}).export(tmp_path / "t.sqlite")
    rows = opened(tmp_path / "t.sqlite").execute(
        "SELECT graphNodeId, graphId, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL"
    )
    assert [tuple(row) for row in rows] == [(None, None, None), (5, 6, None)]


def test_calls_within_calls_do_not_count_work_twice(tmp_path: Path) -> None:
    """The driver's call within the runtime's has its correlation ID."""
    calls = [
        {"start": start, "end": end, "name": name, "domain": domain, "correlation_id": 1, "thread": 7, "process": 9}
        for start, end, name, domain in ((20, 40, "cuLaunchKernel", 1), (10, 50, "cudaLaunchKernel", 0))
    ]
    kernels = [{"name": "k", "start": 100, "end": 150, "correlation_id": 1, "thread": 7}]
    regions = [{"name": "step", "path": "step", "start": 5, "end": 60, "instance": 1, "thread": 7}]
    result = make_result({"kernels": kernels, "api_calls": calls, "regions": regions}, {"pid": 9})
    result.export(tmp_path / "t.sqlite")
    (row,) = report(tmp_path / "t.sqlite", "cuda_kern_exec_sum")
    assert (row["api"], row["count"], row["kernel_time"]) == ("cudaLaunchKernel", 1, 50)
    (row,) = report(tmp_path / "t.sqlite", "nvtx_kern_sum")
    assert (row["kernels"], row["total"]) == (1, 50)
    again = cuptiprof.open(tmp_path / "t.sqlite")
    assert len(again.api_calls) == 2 and again.kernels["region"].tolist() == ["step"]


def test_samples_of_counters(tmp_path: Path) -> None:
    ranges = [
        {"start": 100 * i, "end": 100 * i + 100, "id": i + 1, "kind": 4, "strategy": 4, "occurrences": 1}
        for i in range(3)
    ]
    values = [
        {"metric": "sm__cycles_active.avg", "range": i + 1, "value": v, "count": 1}
        for i, v in enumerate((1.5, 2.0, float("nan")))
    ]
    make_result({"metric_ranges": ranges, "metrics": values}).export(tmp_path / "t.sqlite")
    found = opened(tmp_path / "t.sqlite").execute(
        "SELECT timestamp, metricName, value FROM GPU_METRICS JOIN TARGET_INFO_GPU_METRICS USING (typeId, metricId) ORDER BY timestamp"
    )
    assert [tuple(row) for row in found] == [(0, "sm__cycles_active.avg", 1.5), (100, "sm__cycles_active.avg", 2)]


def test_every_number_has_its_name(run: tuple[Result, Path]) -> None:
    """References into StringIds and the enumerations lead somewhere."""
    _, path = run
    connection = opened(path)
    names = {row[0] for row in connection.execute("SELECT id FROM StringIds")}
    references = {
        "CUPTI_ACTIVITY_KIND_KERNEL": ("demangledName", "shortName", "mangledName"), "CUPTI_ACTIVITY_KIND_RUNTIME": ("nameId",)
    }  # fmt: skip
    for table, columns in references.items():
        for column in columns:
            assert {row[0] for row in connection.execute(f"SELECT DISTINCT {column} FROM {table}")} <= names
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_progress_and_losses(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    training_step().export(tmp_path / "t.sqlite", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] and len(seen) > 1
    again = cuptiprof.open(tmp_path / "t.sqlite")
    assert again.losses["pool_exhausted"] == 3 and again.simulated
    with pytest.raises(ResultError, match="exists"):
        training_step().export(tmp_path / "t.sqlite")


def test_every_query_runs(tmp_path: Path) -> None:
    training_step().export(tmp_path / "t.sqlite")
    for name in QUERIES:
        rows = report(tmp_path / "t.sqlite", name)
        assert rows and json.dumps([list(row) for row in rows]), name
    starts = np.array([row["start"] for row in report(tmp_path / "t.sqlite", "cuda_gpu_trace")])
    assert (starts >= 0).all() and (np.diff(starts) >= 0).all()
