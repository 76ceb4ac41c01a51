"""Databases of Nsight Systems and nvprof opened as runs: what is in them comes out, whatever version; what is wrong in them does no harm."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import trace_path
from databases import KIND, NSYS_VERSIONS, NVPROF, PID, DatabaseMaker, global_id, object_id

import cuptiprof
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError

PUSH_POP, START_END, MARK, DOMAIN = 59, 60, 34, 75


def nsys(path: Path, version: str = "3.16.1") -> DatabaseMaker:
    made = DatabaseMaker(path, NSYS_VERSIONS[version])
    made.add("META_DATA_EXPORT", [{"name": "EXPORT_SCHEMA_VERSION", "value": version}])
    return made


def span(start: int, end: int, correlation: int, **more: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation, "globalPid": global_id(), **more}  # fmt: skip


def small(made: DatabaseMaker) -> Path:
    """Two kernels, a copy, a set, a wait, two nested ranges, one GPU."""
    text = made.text
    name = {"demangledName": text("void gemm<float>(float*)"), "shortName": text("gemm"), "mangledName": text("")}
    sizes = {"gridX": 4, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 40, "staticSharedMemory": 1024, "dynamicSharedMemory": 2048}  # fmt: skip
    made.add(
        KIND + "KERNEL",
        [span(5_000, 9_000, 11, **name, **sizes), span(10_000, 10_500, 12, **name, **{**sizes, "gridX": 8})],
    )
    made.add(KIND + "MEMCPY", [span(2_000, 3_000, 10, bytes=4096, copyKind=1, srcKind=1, dstKind=2)])
    made.add(KIND + "MEMSET", [span(3_100, 3_200, 13, bytes=64, value=7, memKind=2)])
    calls = [(1_000, 1_500, 10, "cudaMemcpyAsync_v3020"), (3_500, 3_700, 11, "cudaLaunchKernel_v7000"), (3_800, 4_000, 12, "cuLaunchKernel"),
             (3_050, 3_060, 13, "cudaMemsetAsync_ptsz_v7000"), (11_000, 12_000, 14, "cudaStreamSynchronize_v3020")]  # fmt: skip
    made.add(KIND + "RUNTIME", [
        {"start": a, "end": b, "globalTid": global_id(77), "correlationId": c, "nameId": text(n), "returnValue": 0} for a, b, c, n in calls
    ])  # fmt: skip
    made.add(KIND + "SYNCHRONIZATION", [span(11_000, 12_000, 14, syncType=3, eventId=5)])
    in_place = "textId" not in NSYS_VERSIONS["1.0"]["NVTX_EVENTS"]
    assert in_place
    made.add("NVTX_EVENTS", [
        {"start": a, "end": b, "eventType": kind, "globalTid": global_id(77), "text": t, "domainId": 0}
        for a, b, kind, t in ((900, 20_000, PUSH_POP, "step"), (3_400, 3_750, PUSH_POP, "fwd"), (4_100, 4_200, START_END, "async"), (4_300, None, MARK, "here"))
    ])  # fmt: skip
    made.add("TARGET_INFO_GPU", [{"id": 0, "name": "NVIDIA H100", "smCount": 132, "cuDevice": 0, "totalMemory": 80 << 30, "computeMajor": 9, "clockRate": 1_980_000_000, "memoryBandwidth": 3_352_000_000_000}])  # fmt: skip
    made.add("TARGET_INFO_SESSION_START_TIME", [{"utcEpochNs": 1_700_000_000_000_000_000}])
    made.add("OSRT_API", [{"start": 1, "end": 2, "globalTid": global_id(77), "nameId": 0}] * 3)
    return made.done()


@pytest.mark.parametrize("version", NSYS_VERSIONS)
def test_nsys_of_every_version(tmp_path: Path, version: str) -> None:
    run = cuptiprof.open(small(nsys(tmp_path / "report.sqlite", version)))
    kernels = run.kernels
    assert kernels["name"].tolist() == ["void gemm<float>(float*)"] * 2
    assert kernels["start"].tolist() == [5_000, 10_000] and kernels["end"].tolist() == [9_000, 10_500]
    assert kernels["region"].tolist() == ["step/fwd", "step"] and kernels["thread"].tolist() == [77, 77]
    assert kernels["grid_x"].tolist() == [4, 8] and kernels["block_x"].tolist() == [128, 128]
    assert (
        kernels["registers_per_thread"].tolist() == [40, 40] and kernels["static_shared_memory"].tolist() == [1024] * 2
    )
    assert run.memcpys["copy_kind"].tolist() == [1] and run.memcpys["bytes"].tolist() == [4096]
    assert run.memcpys["src_kind"].tolist() == [2] and run.memcpys["dst_kind"].tolist() == [3]  # pinned, device
    assert run.memcpys["region"].tolist() == ["step"] and run.memsets["value"].tolist() == [7]
    assert run.api_calls["name"].tolist() == ["cudaMemcpyAsync", "cudaLaunchKernel", "cuLaunchKernel", "cudaMemsetAsync", "cudaStreamSynchronize"]  # fmt: skip
    assert run.api_calls["domain"].tolist() == [0, 0, 1, 0, 0] and set(run.api_calls["process"]) == {PID}
    assert run.regions["path"].tolist() == ["step", "step/fwd"] and run.regions["parent"].tolist() == [0, 1]
    assert sorted(run.markers["name"]) == ["async", "here"] and set(run.markers["category"]) == {"nvtx"}
    assert run.devices["name"].tolist() == ["NVIDIA H100"] and run.devices["num_multiprocessors"].tolist() == [132]
    assert not run.losses and not run.simulated
    if version != "1.0":
        assert run.synchronizations["type"].tolist() == [3] and run.synchronizations["stream"].tolist() == [7]
        assert run.devices["core_clock_rate"].tolist() == [1_980_000]  # kHz
        assert run.metadata["not_kept"] == {"OSRT_API": 3} and "not kept of the database: 3 OSRT_API" in str(
            run.report()
        )
        assert run.clock_to_unix(5_000) == 1_700_000_000_000_005_000
        assert run.metadata["origin"] == {"file": "report.sqlite", "tool": "nsys", "schema": version}


def test_names_by_number_domains_and_ranges_that_stay_open(tmp_path: Path) -> None:
    made = nsys(tmp_path / "r.sqlite")
    made.add(KIND + "KERNEL", [span(5_000, 9_000, 11, demangledName=made.text("k"), gridX=1, blockX=32)])
    made.add(
        KIND + "RUNTIME",
        [
            {
                "start": 4_000,
                "end": 4_100,
                "globalTid": global_id(5),
                "correlationId": 11,
                "nameId": made.text("cudaLaunchKernel_v7000"),
            }
        ],
    )
    made.add("NVTX_EVENTS", [
        {"start": 0, "eventType": DOMAIN, "domainId": 3, "textId": made.text("NCCL")},
        {"start": 1_000, "eventType": PUSH_POP, "globalTid": global_id(5), "textId": made.text("open"), "domainId": 3},
        {"start": 1_000, "end": 1_500, "eventType": PUSH_POP, "globalTid": global_id(6), "textId": made.text("other thread"), "domainId": 0},
        {"start": 1, "end": 2, "eventType": 70, "globalTid": global_id(6)},
    ])  # fmt: skip
    run = cuptiprof.open(made.done())
    assert run.kernels["region"].tolist() == ["open"]
    first = run.regions.where(run.regions["thread"] == 5)
    assert (
        first["domain"].tolist() == ["NCCL"] and first["is_open"].tolist() == [1] and first["end"].tolist() == [9_000]
    )
    assert run.metadata["not_kept"] == {"NVTX_EVENTS of other kinds": 1}


def test_processes_are_told_apart(tmp_path: Path) -> None:
    """Two processes have the same correlation IDs: each kernel gets its own call."""
    made = nsys(tmp_path / "r.sqlite")
    made.add(
        KIND + "KERNEL",
        [span(5_000, 6_000, 1, globalPid=global_id(process=pid), demangledName=made.text("k")) for pid in (100, 200)],
    )
    made.add(KIND + "RUNTIME", [
        {"start": 1_000, "end": 1_100, "globalTid": global_id(pid + 1, pid), "correlationId": 1, "nameId": made.text("cudaLaunchKernel")}
        for pid in (200, 100)
    ])  # fmt: skip
    run = cuptiprof.open(made.done())
    assert run.kernels["thread"].tolist() == [101, 201] and run.metadata["processes"] == [100, 200]
    calls = dict(zip(run.api_calls["correlation_id"].tolist(), run.api_calls["process"].tolist(), strict=True))
    assert [calls[c] for c in run.kernels["correlation_id"].tolist()] == [100, 200]


def test_copies_graphs_events_and_memory(tmp_path: Path) -> None:
    made = nsys(tmp_path / "r.sqlite")
    peer = {"srcDeviceId": 1, "dstDeviceId": 2, "srcContextId": 3, "dstContextId": 4}
    made.add(
        KIND + "MEMCPY",
        [
            span(1, 2, 1, copyKind=kind, bytes=8, srcKind=4, dstKind=9, **(peer if kind == 10 else {}))
            for kind in (10, 11, 12, 13, 99)
        ],
    )
    made.add(KIND + "GRAPH_TRACE", [span(10, 20, 2, graphId=1, graphExecId=6)])
    made.add(
        KIND + "CUDA_EVENT",
        [{"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 3, "globalPid": global_id(), "eventId": 9}],
    )
    made.add(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        [span(i, 0, 4, address=0x7F0000000000, bytes=512, memKind=2, memoryOperationType=i) for i in (0, 1, 2)],
    )
    run = cuptiprof.open(made.done())
    assert (
        run.memcpys["copy_kind"].tolist() == [10, 1, 2, 8, 0]
        and set(run.memcpys["src_kind"]) == {5}
        and set(run.memcpys["dst_kind"]) == {0}
    )
    assert run.memcpys["src_device"].tolist() == [1, 0, 0, 0, 0] and run.memcpys["is_peer"].tolist() == [1, 0, 0, 0, 0]
    assert run.graph_launches["graph_id"].tolist() == [6] and run.cuda_events["event"].tolist() == [9]
    assert run.memory["operation"].tolist() == [1, 2] and run.memory["memory_kind"].tolist() == [3, 3]
    assert run.losses["unknown_records"] == 1 and run.losses["orphan_correlations"] == 6


def nvprof(path: Path) -> DatabaseMaker:
    return DatabaseMaker(path, NVPROF, "StringTable")


def test_nvprof(tmp_path: Path) -> None:
    made = nvprof(tmp_path / "prof.nvvp")
    text = made.text
    work = {"deviceId": 0, "contextId": 1, "streamId": 7}
    grid = {"gridX": 4, "gridY": 1, "gridZ": 1, "blockX": 64, "blockY": 1, "blockZ": 1, "registersPerThread": 16}
    base = 1_600_000_000_000_000_000
    made.add(
        KIND + "CONCURRENT_KERNEL",
        [{**work, **grid, "start": base + 500, "end": base + 900, "correlationId": 3, "name": text("_Z4gemmPf")}],
    )
    made.add(
        KIND + "KERNEL",
        [{**work, **grid, "start": base + 950, "end": base + 990, "correlationId": 4, "name": text("_Z4reluPf")}],
    )
    made.add(
        KIND + "MEMCPY",
        [
            {
                **work,
                "start": base + 100,
                "end": base + 200,
                "correlationId": 1,
                "bytes": 32,
                "copyKind": 2,
                "srcKind": 3,
                "dstKind": 1,
                "flags": 1,
            }
        ],
    )
    made.add(
        KIND + "MEMCPY2",
        [
            {
                **work,
                "start": base + 210,
                "end": base + 220,
                "correlationId": 2,
                "bytes": 32,
                "copyKind": 10,
                "srcDeviceId": 0,
                "dstDeviceId": 1,
            }
        ],
    )
    made.add(
        KIND + "MEMSET",
        [
            {
                **work,
                "start": base + 230,
                "end": base + 240,
                "correlationId": 9,
                "bytes": 16,
                "value": 1,
                "memoryKind": 3,
            }
        ],
    )
    made.add(KIND + "RUNTIME", [
        {"cbid": cbid, "start": base + at, "end": base + at + 5, "processId": PID, "threadId": 71, "correlationId": c, "returnValue": 0}
        for cbid, at, c in ((211, 310, 3), (211, 410, 4), (31, 50, 1), (99999, 60, 2))
    ])  # fmt: skip
    made.add(
        KIND + "DRIVER",
        [{"cbid": 307, "start": base + 311, "end": base + 312, "processId": PID, "threadId": 71, "correlationId": 3}],
    )
    marks = [(2, 300, 1, 71, "step"), (2, 305, 2, 71, "fwd"), (4, 350, 2, 71, ""), (4, 600, 1, 71, ""), (1, 320, 3, 71, "mark"), (2, 700, 4, 71, "open"),
             (2, 100, 5, 71, "across"), (4, 120, 5, 72, "")]  # fmt: skip
    made.add(KIND + "MARKER", [
        {"flags": flags, "timestamp": base + at, "id": i, "objectKind": 2, "objectId": object_id(thread), "name": text(n) if n else 0, "domain": 0}
        for flags, at, i, thread, n in marks
    ])  # fmt: skip
    made.add(
        KIND + "DEVICE",
        [
            {
                "id": 0,
                "name": text("Tesla V100"),
                "numMultiprocessors": 80,
                "computeCapabilityMajor": 7,
                "coreClockRate": 1_530_000,
            }
        ],
    )
    made.add(KIND + "CONTEXT", [{"contextId": 1, "deviceId": 0, "nullStreamId": 7}])
    made.add(KIND + "METRIC", [{"id": 1, "correlationId": 3}] * 2)
    run = cuptiprof.open(made.done())
    assert sorted(run.kernels["name"]) == ["_Z4gemmPf", "_Z4reluPf"]
    gemm = run.kernels.where(run.kernels["correlation_id"] == 3)
    assert (
        gemm["region"].tolist() == ["step/fwd"] and gemm["thread"].tolist() == [71] and gemm["grid_x"].tolist() == [4]
    )
    assert gemm["start"].tolist() == [base + 500]
    assert (
        run.memcpys["copy_kind"].tolist() == [2, 10]
        and run.memcpys["is_async"].tolist() == [1, 0]
        and run.memcpys["dst_device"].tolist() == [0, 1]
    )
    assert run.api_calls["name"].tolist() == [
        "cudaLaunchKernel",
        "cudaLaunchKernel",
        "cudaMemcpy",
        "runtime call 99999",
        "cuLaunchKernel",
    ]
    assert run.api_calls["domain"].tolist() == [0, 0, 0, 0, 1] and set(run.api_calls["process"]) == {PID}
    assert run.regions["path"].tolist() == ["step", "step/fwd", "open"] and run.regions["is_open"].tolist() == [0, 0, 1]
    assert sorted(run.markers["name"]) == ["across", "mark"]
    assert run.devices["num_multiprocessors"].tolist() == [80] and run.contexts["null_stream"].tolist() == [7]
    assert run.losses["orphan_correlations"] == 1  # the set
    assert run.metadata["not_kept"] == {KIND + "METRIC": 2} and run.metadata["origin"]["tool"] == "nvprof"


def test_the_same_ranges_as_load_nvprof(tmp_path: Path) -> None:
    """torch's own reader of these files: ranges by name, with the kernels launched strictly inside."""
    profiler = pytest.importorskip("torch.autograd.profiler")
    made = nvprof(tmp_path / "prof.sqlite")
    kernels, calls, marks = [], [], []
    for i in range(20):
        at = 10_000 * i
        marks += [{"flags": 2, "timestamp": at, "id": i + 1, "objectKind": 2, "objectId": object_id(9), "name": made.text(f"op{i % 3}")},
                  {"flags": 4, "timestamp": at + 900, "id": i + 1, "objectKind": 2, "objectId": object_id(9), "name": 0}]  # fmt: skip
        calls.append(
            {"cbid": 211, "start": at + 100, "end": at + 200, "processId": 1, "threadId": 9, "correlationId": i + 1}
        )
        kernels.append(
            {
                "start": at + 300,
                "end": at + 300 + 7 * i,
                "correlationId": i + 1,
                "name": made.text(f"k{i % 2}"),
                "gridX": 1,
                "blockX": 1,
            }
        )
    for table, rows in (("CONCURRENT_KERNEL", kernels), ("RUNTIME", calls), ("MARKER", marks)):
        made.add(KIND + table, rows)
    path = made.done()
    theirs = profiler.load_nvprof(str(path))
    run = cuptiprof.open(path)
    times = dict.fromkeys(run.regions["instance"].tolist(), 0)
    for instance, duration in zip(
        run.kernels["region_instance"].tolist(), run.kernels["duration"].tolist(), strict=True
    ):
        times[instance] += duration
    ours = sorted(
        (int(s), n, times[i])
        for s, n, i in zip(run.regions["start"], run.regions["name"], run.regions["instance"].tolist(), strict=True)
    )
    assert ours == [(int(e.time_range.start), e.name, sum(int(k.duration) for k in e.kernels)) for e in theirs]


def as_nsys(run: Result, path: Path) -> Path:
    """A run with recorded times as Nsight Systems would have written it."""
    made = nsys(path)
    small = _small_threads(run)
    for table, kind in (("kernels", "KERNEL"), ("memcpys", "MEMCPY"), ("memsets", "MEMSET")):
        made.add(KIND + kind, _rows(run, table, made))
    made.add(KIND + "RUNTIME", [
        {"start": s, "end": e, "globalTid": global_id(small[t]), "correlationId": c, "nameId": made.text(n + "_v7000")}
        for s, e, t, c, n in _columns(run, "api_calls", "start", "end", "thread", "correlation_id", "name")
    ])  # fmt: skip
    made.add("NVTX_EVENTS", [
        {"start": s, "end": e, "eventType": PUSH_POP, "globalTid": global_id(small[t]), "textId": made.text(n)}
        for s, e, t, n in _columns(run, "regions", "start", "end", "thread", "name")
    ])  # fmt: skip
    return made.done()


def _small_threads(run: Result) -> dict[int, int]:
    """Linux gives threads numbers of 22 bits; traces have others."""
    used = {0, *run.api_calls["thread"].tolist(), *run.regions["thread"].tolist()}
    return {thread: i for i, thread in enumerate(sorted(used))}


def _columns(run: Result, table: str, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(run.tables[table][name].tolist() for name in names), strict=True)


def _rows(run: Result, table: str, made: DatabaseMaker) -> list[dict[str, Any]]:
    more = {"kernels": ("name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread"),
            "memcpys": ("bytes", "copy_kind", "src_kind", "dst_kind"), "memsets": ("bytes", "memory_kind")}[table]  # fmt: skip
    given = {"name": "demangledName", "registers_per_thread": "registersPerThread", "copy_kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind",
             "memory_kind": "memKind", "bytes": "bytes"}  # fmt: skip
    out = []
    for start, end, device, context, stream, correlation, *values in _columns(
        run, table, "start", "end", "device", "context", "stream", "correlation_id", *more
    ):
        row = span(start, end, correlation, deviceId=device, contextId=context, streamId=stream)
        for name, value in zip(more, values, strict=True):
            column = given.get(name, name[:-2] + name[-1].upper())
            row[column] = (
                made.text(value)
                if name == "name"
                else value - 1
                if name in ("src_kind", "dst_kind", "memory_kind")
                else value
            )
        out.append(row)
    return out


def test_a_recorded_run_there_and_back(tmp_path: Path) -> None:
    """6,095 pieces of work of a V100."""
    run = cuptiprof.open(trace_path("train-v100"))
    back = cuptiprof.open(as_nsys(run, tmp_path / "train.sqlite"))
    same = {
        "kernels": ("start", "end", "name", "device", "context", "stream", "correlation_id", "grid_x", "grid_z", "block_x", "registers_per_thread"),
        "memcpys": ("start", "end", "bytes", "copy_kind", "src_kind", "dst_kind", "stream"),
        "memsets": ("start", "end", "bytes", "memory_kind"),
        "api_calls": ("start", "end", "name", "correlation_id"),
    }  # fmt: skip
    small = _small_threads(run)
    for table, columns in same.items():
        assert back.tables[table]["thread"].tolist() == [small[t] for t in run.tables[table]["thread"].tolist()]
        for column in columns:
            assert np.array_equal(run.tables[table][column], back.tables[table][column]), (table, column)
    assert sorted(_columns(run, "regions", "start", "end", "name")) == sorted(
        _columns(back, "regions", "start", "end", "name")
    )
    # Where the thread of the launch has a range open itself: NVTX knows nothing of torch's backward.
    thread_of = dict(zip(run.regions["instance"].tolist(), run.regions["thread"].tolist(), strict=True))
    own = np.array([thread_of.get(i) == t for i, t in _columns(run, "kernels", "region_instance", "thread")])
    assert own.sum() > 1500 and np.array_equal(run.kernels["region"][own], back.kernels["region"][own])
    for view in ("summary", "kernel-types", "temporal", "launches"):
        assert back.report(view).rows == run.report(view).rows, view
    assert {(row["status"], row["new_ns"] - row["base_ns"]) for row in run.diff(back).rows} == {("both", 0)}


def test_exports_and_saves(tmp_path: Path) -> None:
    run = cuptiprof.open(small(nsys(tmp_path / "r.sqlite")))
    run.save(tmp_path / "run")
    assert cuptiprof.open(tmp_path / "run").kernels["region"].tolist() == run.kernels["region"].tolist()
    run.export(tmp_path / "t.json")
    assert cuptiprof.open(tmp_path / "t.json").kernels["start"].tolist() == run.kernels["start"].tolist()


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(small(nsys(tmp_path / "whatever it is called")))
    assert main(["report", path, "--view", "regions"]) == 0
    assert "fwd" in capsys.readouterr().out
    assert main(["diff", path, path, "--by", "region"]) == 0


# What is wrong in a file does no harm.


def refused(path: Path) -> str:
    with pytest.raises(ResultError) as caught:
        cuptiprof.open(path)
    return str(caught.value)


def changed(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def test_another_database(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "places.sqlite")
    made.execute("CREATE TABLE moz_places (id INTEGER)")
    made.close()
    assert "none of Nsight Systems or nvprof (its tables: moz_places)" in refused(tmp_path / "places.sqlite")


@pytest.mark.parametrize("keep", [16, 17, 100, 1024, 0.3, 0.6, 0.9])
def test_truncated(tmp_path: Path, keep: float) -> None:
    path = as_nsys(cuptiprof.open(trace_path("alexnet-a100")), tmp_path / "r.sqlite")
    data = path.read_bytes()
    path.write_bytes(data[: int(keep if keep > 1 else keep * len(data))])
    assert "SQLite database" in refused(path)


def test_random_damage_is_an_error_or_a_run(tmp_path: Path) -> None:
    path = small(nsys(tmp_path / "r.sqlite"))
    data, random = path.read_bytes(), np.random.default_rng(1)
    outcomes = set()
    for _ in range(300):
        broken = bytearray(data)
        for at in random.integers(16, len(data), 1 + random.integers(30)).tolist():
            broken[at] = random.integers(256)
        path.write_bytes(broken)
        try:
            run = cuptiprof.open(path)
        except ResultError:
            outcomes.add("error")
        else:
            outcomes.add("run")
            assert (run.kernels["end"] >= run.kernels["start"]).all() and run.report("summary").to("json")
    assert outcomes == {"error", "run"}


def test_pages_that_lead_to_one_page_by_many_ways(tmp_path: Path) -> None:
    """Some hundred pointers to a page with some hundred pointers to one leaf: 30 million rows in 1 MB."""
    made = nsys(tmp_path / "r.sqlite", "1.0")
    made.add(KIND + "MEMSET", [span(i, i + 1, i) for i in range(40_000)])
    path = made.done()
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute(f"SELECT rootpage FROM sqlite_master WHERE name = '{KIND}MEMSET'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())

    def lead(page: int, to: int) -> list[int]:
        """All pointers of an inner page lead to one; returns what they were."""
        base = (page - 1) * size
        assert data[base] == 5  # inner page of a table
        cells = int.from_bytes(data[base + 3 : base + 5], "big")
        were = []
        for at in [
            base + 8,
            *(base + int.from_bytes(data[base + 12 + 2 * i : base + 14 + 2 * i], "big") for i in range(cells)),
        ]:
            were.append(int.from_bytes(data[at : at + 4], "big"))
            data[at : at + 4] = to.to_bytes(4, "big")
        return were

    _, leaf, spare, *_ = lead(root, root)
    data[(spare - 1) * size : spare * size] = data[(root - 1) * size : root * size]
    lead(root, spare)
    lead(spare, leaf)
    path.write_bytes(data)
    assert "more rows than it has room for" in refused(path)
    # The same where rows are only counted.
    changed(
        tmp_path / "r.sqlite",
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET name = '{KIND}OTHER', tbl_name = '{KIND}OTHER', sql = 'CREATE TABLE {KIND}OTHER (start)' WHERE name = '{KIND}MEMSET'",
    )
    assert "more rows than it has room for" in refused(path)


def test_a_view_is_no_table(tmp_path: Path) -> None:
    """It could take for ever, or read other files' data by functions."""
    path = small(nsys(tmp_path / "r.sqlite"))
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS start, x AS end FROM c"
    changed(path, f"DROP TABLE {KIND}KERNEL", f"CREATE VIEW {KIND}KERNEL AS {endless}")
    run = cuptiprof.open(path)
    assert len(run.kernels) == 0 and len(run.memcpys) == 1


def test_a_virtual_table_is_no_table(tmp_path: Path) -> None:
    path = changed(
        small(nsys(tmp_path / "r.sqlite")),
        f"DROP TABLE {KIND}KERNEL",
        f"CREATE VIRTUAL TABLE {KIND}KERNEL USING fts5(start, end)",
    )
    assert len(cuptiprof.open(path).kernels) == 0


def test_generated_columns_are_missing_and_triggers_do_not_run(tmp_path: Path) -> None:
    path = small(nsys(tmp_path / "r.sqlite"))
    changed(
        path,
        f"ALTER TABLE {KIND}MEMCPY DROP COLUMN bytes",
        f"ALTER TABLE {KIND}MEMCPY ADD COLUMN bytes INTEGER GENERATED ALWAYS AS (length(hex(zeroblob(1000000000)))) VIRTUAL",
        f"CREATE TRIGGER t AFTER INSERT ON {KIND}MEMCPY BEGIN DELETE FROM {KIND}KERNEL; END",
    )
    run = cuptiprof.open(path)
    assert run.memcpys["bytes"].tolist() == [0] and len(run.kernels) == 2


def test_types_that_lie_and_numbers_that_cannot_be(tmp_path: Path) -> None:
    path = small(nsys(tmp_path / "r.sqlite"))
    kernel = f"INSERT INTO {KIND}KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, gridX) VALUES"
    wrong = [
        "('soon', 9, 0, 1, 7, 1, 0, 1, 1)", "(1.5, 9, 0, 1, 7, 1, 0, 1, 1)", "(x'00', 9, 0, 1, 7, 1, 0, 1, 1)", "(NULL, 9, 0, 1, 7, 1, 0, 1, 1)",
        "(1, NULL, 0, 1, 7, 1, 0, 1, 1)", "(9, 1, 0, 1, 7, 1, 0, 1, 1)", "(9223372036854775807, 9223372036854775807, 0, 1, 7, 1, 0, 1, 1)",
        "(-9223372036854775808, 9, 0, 1, 7, 1, 0, 1, 1)", "(1, 9, -1, 1, 7, 1, 0, 1, 1)", "(1, 9, 4294967296, 1, 7, 1, 0, 1, 1)",
        "(1, 9, 0, 1, 7, 99999999999, 0, 1, 1)", "(1, 9, 0, 1, 7, 1, 0, 1, -5)", "(1, 9, 0, 1, 7, 1, 0, 'name', 1)", "(1, 9, 0, 1, 7, 1, 'pid', 1, 1)",
    ]  # fmt: skip
    changed(path, *(f"{kernel} {row}" for row in wrong), f"{kernel} (1, 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL)", f"{kernel} (-500, -400, 0, 1, 7, 1, 0, 987654, 1)")  # fmt: skip
    run = cuptiprof.open(path)
    assert run.losses["unknown_records"] == len(wrong)
    assert run.metadata["skipped_first"] == {"table": KIND + "KERNEL", "row": 2, "reason": "start is no integer"}
    assert f"{len(wrong)} rows of the database make no sense and are left out, first row 2 of {KIND}KERNEL" in str(
        run.report()
    )
    assert run.kernels["start"].tolist() == [5_000, 10_000, 1, -500]
    assert run.kernels["name"].tolist()[2:] == ["", ""] and run.kernels["grid_x"].tolist() == [4, 8, 1, 1]


def test_columns_that_are_missing(tmp_path: Path) -> None:
    made = DatabaseMaker(
        tmp_path / "r.sqlite", {KIND + "KERNEL": "start end", KIND + "RUNTIME": "start", "NVTX_EVENTS": "text"}
    )
    made.add(KIND + "KERNEL", [{"start": 1, "end": 5}])
    made.add(KIND + "RUNTIME", [{"start": 1}])
    made.add("NVTX_EVENTS", [{"text": "x"}])
    run = cuptiprof.open(made.done())
    assert run.kernels["duration"].tolist() == [4] and len(run.api_calls) == 0 and len(run.regions) == 0
    assert run.losses["unknown_records"] == 1 and run.losses["orphan_correlations"] == 1


def test_hostile_names(tmp_path: Path) -> None:
    made = nsys(tmp_path / "r.sqlite")
    names = [b"\xff\xfe name \x1b[31m", "k" * 100_000, "a/b\\c", "x\0y", '"; DROP TABLE kernels; --']
    made.add(
        KIND + "KERNEL", [span(10 * i, 10 * i + 5, i + 1, demangledName=made.text(n)) for i, n in enumerate(names)]
    )
    made.add("NVTX_EVENTS", [{"start": 1, "end": 99, "eventType": PUSH_POP, "globalTid": global_id(1), "text": "a/b"}])
    run = cuptiprof.open(made.done())
    found = run.kernels["name"].tolist()
    assert found[0] == "\\xff\\xfe name \x1b[31m" and len(found[1]) == 65_536 and found[4] == names[4]
    assert run.regions["path"].tolist() == ["a\\/b"]
    assert "\x1b" not in str(run.report("summary"))
    run.save(tmp_path / "run")


def test_table_names_with_quotes(tmp_path: Path) -> None:
    path = changed(
        small(nsys(tmp_path / "r.sqlite")),
        'CREATE TABLE "a""b; DROP" (start INTEGER)',
        'INSERT INTO "a""b; DROP" VALUES (1)',
    )
    assert cuptiprof.open(path).metadata["not_kept"] == {"OSRT_API": 3, 'a"b; DROP': 1}


def test_an_index_does_not_mix_rows(tmp_path: Path) -> None:
    """A column that is read by itself could come in the order of an index."""
    made = nsys(tmp_path / "r.sqlite")
    names = ["c", "a", "b"]
    made.add(
        "NVTX_EVENTS",
        [
            {"start": i, "end": i + 1, "eventType": MARK, "globalTid": global_id(1), "text": n}
            for i, n in enumerate(names)
        ],
    )
    run = cuptiprof.open(changed(made.done(), "CREATE INDEX i ON NVTX_EVENTS (text)"))
    assert run.markers["name"].tolist() == names


def test_more_rows_than_are_read_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuptiprof.io.sqlite import database, table_rows

    for module in (database, table_rows):
        monkeypatch.setattr(module, "MAX_ROWS", 3)
    run = cuptiprof.open(small(nsys(tmp_path / "r.sqlite")))
    assert len(run.api_calls) == 3 and run.metadata["not_kept"][KIND + "RUNTIME beyond 3 rows"] == 2


def test_nothing_is_written(tmp_path: Path) -> None:
    path = small(nsys(tmp_path / "r.sqlite"))
    path.chmod(0o444)
    before = path.read_bytes()
    cuptiprof.open(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["r.sqlite"]


@pytest.mark.parametrize("name", ["a?b.sqlite", "a%20b.sqlite", "#.sqlite", "ü.sqlite"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    assert len(cuptiprof.open(small(nsys(tmp_path / name))).kernels) == 2
