"""A trace played through the whole collector gives what opening the file gives."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import trace_path

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError, ResultError

COLUMNS = {
    "kernels": ("start", "end", "name", "correlation_id", "region", "thread", "stream", "context", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "registers_per_thread", "static_shared_memory"),
    "memcpys": ("start", "end", "bytes", "copy_kind", "src_kind", "dst_kind", "stream", "region", "thread"),
    "memsets": ("start", "end", "bytes", "region"),
    "api_calls": ("start", "end", "name", "cbid", "thread", "correlation_id", "region"),
    "synchronizations": ("start", "end", "type", "stream", "correlation_id"),
    "regions": ("start", "end", "name", "path", "thread", "depth"),
}  # fmt: skip


def ordered(table: cuptiprof.data.tables.Table) -> cuptiprof.data.tables.Table:  # type: ignore[name-defined]
    return table.where(np.lexsort([table["end"], table["start"]]))


@pytest.mark.parametrize("name", ["train-v100", "alexnet-a100", "triton-a100"])
def test_replay_equals_the_file(name: str) -> None:
    with cuptiprof.profile(device=f"replay:{trace_path(name)}") as prof:
        pass
    played, read = prof.result(), cuptiprof.open(trace_path(name))
    assert played.simulated and not read.simulated
    assert not played.losses
    for table, columns in COLUMNS.items():
        a, b = ordered(played.tables[table]), ordered(read.tables[table])
        assert len(a) == len(b), table
        for column in columns:
            assert (a[column] == b[column]).all(), f"{table}.{column}"
    for view in ("summary", "regions", "api-trace", "gpu-trace"):
        rows = [json.loads(r.report(view).to("json"))["rows"] for r in (played, read)]
        for row in (*rows[0], *rows[1]):
            row.pop("device", None)  # the stand-in says "(simulated)"
            row.pop("throughput", None)  # a file's own; played again, by the time, which older files round
        key = lambda row: json.dumps(row, sort_keys=True)  # noqa: E731
        assert sorted(rows[0], key=key) == sorted(rows[1], key=key), view
    assert "SIMULATED" in str(played.summary())


def test_speed_keeps_the_pace() -> None:
    trace = cuptiprof.open(trace_path("train-v100"))
    recorded = (trace.api_calls["end"].max() - trace.api_calls["start"].min()) / 1e9
    began = time.perf_counter()
    with cuptiprof.profile(device=f"replay:{trace_path('train-v100')}", speed=2.0):
        took = time.perf_counter() - began
    assert took > recorded / 2 * 0.9


def test_a_missing_trace_is_an_error_and_leaves_no_session() -> None:
    with pytest.raises(CuptiprofError):
        cuptiprof.profile(device="replay:nowhere.json").start()
    with cuptiprof.profile(device=f"replay:{trace_path('triton-a100')}") as prof:
        pass
    assert len(prof.result().kernels) == 1


def api(name: str, cbid: int | None, correlation: int, ts: float, dur: float, tid: int = 11) -> dict[str, Any]:
    category = "cuda_runtime" if not name.startswith("cu") or name.startswith("cuda") else "cuda_driver"
    args = {"cbid": cbid, "correlation": correlation}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, correlation: int, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    where = {"device": 0, "context": 1, "stream": 7, "correlation": correlation, "grid": [3, 2, 1], "block": [64, 2, 1]}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": where | args}


def annotation(name: str, ts: float, dur: float, tid: int = 11) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}


def both(events: list[dict[str, Any]], path: Path) -> tuple[Result, Result]:
    """The trace played, and the trace read."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    with cuptiprof.profile(device=f"replay:{path}") as prof:
        pass
    return prof.result(), cuptiprof.open(path)


def assert_equal(
    played: Result, read: Result, tables: tuple[str, ...] = tuple(COLUMNS), but: tuple[str, ...] = ()
) -> None:
    for table in tables:
        a, b = ordered(played.tables[table]), ordered(read.tables[table])
        assert len(a) == len(b), table
        for column in (c for c in COLUMNS[table] if c not in but):
            assert (a[column] == b[column]).all(), f"{table}.{column}"


def test_what_real_traces_here_lack(tmp_path: Path) -> None:
    events = [
        annotation("fwd", 90, 60),
        api("cudaLaunchKernel", 211, 5, 100, 10),  # through a recorded driver call
        api("cuLaunchKernel", 307, 5, 102, 5),
        kernel("a", 5, 120, 3),
        api("cuLaunchKernel", 307, 6, 130, 5),
        kernel("second GPU", 6, 140, 3, device=1, context=2, stream=13),
        api("cudaGraphLaunch", 311, 9, 170, 5),
        kernel("node 2", 9, 183, 2, **{"graph id": 4, "graph node id": 2}),
        kernel("node 1", 9, 180, 2, **{"graph id": 4, "graph node id": 1}),
        api("cudaMemcpyPeerAsync", 113, 10, 195, 3),  # the callback ID of another function
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "pid": 0, "tid": 7, "ts": 200, "dur": 4,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": 10, "bytes": 77, "fromDevice": 0, "toDevice": 1}},
        api("cudaMalloc", None, 11, 210, 3),
        api("cudaLaunchKernel", 211, 12, 220, 3),  # its kernel was not recorded
    ]  # fmt: skip
    played, read = both(events, tmp_path / "trace.json")
    assert_equal(played, read, but=("cbid",))
    assert {k: v for k, v in dict(played.losses).items() if v} == {}
    assert len(played.kernels) == 4
    assert played.kernels.where(played.kernels["name"] == "second GPU").row(0)["device"] == 1
    nodes = played.kernels.where(played.kernels["graph_id"] == 4)
    assert sorted(zip(nodes["name"], nodes["graph_node_id"], strict=True)) == [("node 1", 1), ("node 2", 2)]
    assert played.memcpys.row(0)["dst_device"] == 1 and played.memcpys.row(0)["is_peer"] == 1
    assert played.metadata["not_replayed"] == {}


def test_calls_of_threads_overlap(tmp_path: Path) -> None:
    """A long call on one thread does not delay what another one does meanwhile; regions without length are regions."""
    events = [
        api("cudaDeviceSynchronize", 165, 1, 100, 200, tid=11),
        annotation("b", 150, 50, tid=12),
        annotation("none", 170, 0, tid=12),
        api("cudaLaunchKernel", 211, 2, 160, 5, tid=12),
        kernel("x", 2, 190, 20),
    ]
    played, read = both(events, tmp_path / "trace.json")
    assert_equal(played, read)
    assert list(played.kernels["region"]) == ["b"]
    assert sorted(played.regions["start"]) == [150_000, 170_000]


def test_what_cannot_be_played_is_said(tmp_path: Path) -> None:
    sync = {"cuda_sync_kind": "Stream Sync", "stream": 7, "correlation": 99, "context": 1}
    events = [
        api("hipLaunchKernel", 211, 5, 100, 10),
        kernel("k", 5, 120, 3),
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 130, "dur": 5, "args": sync},
    ]
    played, read = both(events, tmp_path / "trace.json")
    assert_equal(played, read, ("memcpys", "memsets", "regions"))
    assert list(played.kernels["name"]) == ["k"] and len(read.api_calls) == 1 and not len(played.api_calls)
    assert played.metadata["not_replayed"] == {
        "calls of functions that CUDA does not have": 1,
        "synchronizations without their call": 1,
    }


def test_an_impossible_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="GPU 4000000000"):
        both([kernel("k", 5, 120, 3, device=4_000_000_000)], tmp_path / "trace.json")
    played, _ = both([], tmp_path / "empty.json")
    assert len(played.kernels) == 0
