"""Whose backward it is: kernels that threads of the autograd engine launch in imported traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, trace_path

import cuptiprof

MAIN, ENGINE, LOADER, OTHER = 1, 77, 3, 4


def span(cat: str, name: str, ts: float, dur: float, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def op(
    name: str, ts: float, dur: float, tid: int, key: int, number: int = -1, forward_thread: int = 0
) -> dict[str, Any]:
    args = {"External id": key, **({"Sequence number": number} if number >= 0 else {}), "Fwd thread id": forward_thread}
    return span("cpu_op", name, ts, dur, tid, **args)


def launch(correlation: int, ts: float, tid: int, dur: float = 10) -> list[dict[str, Any]]:
    return [
        span("cuda_runtime", "cudaLaunchKernel", ts, 1, tid, correlation=correlation),
        span("kernel", f"kernel {correlation}", ts + 5, dur, 0, correlation=correlation, stream=7),
    ]


def arrow(key: int, source: tuple[int, float], target: tuple[int, float]) -> list[dict[str, Any]]:
    return [
        {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": key, "pid": 1, "tid": tid, "ts": ts}
        for phase, (tid, ts) in (("s", source), ("f", target))
    ]


def ddp_step(name_of_node: str, number: int, forward_thread: int) -> list[dict[str, Any]]:
    """A step of DistributedDataParallel: backward runs on the engine's thread, which opens nccl:all_reduce itself, while a data loader
    and another thread have annotations of their own open."""
    return [
        span("user_annotation", "ProfilerStep#1", 0, 1000, MAIN),
        span("user_annotation", "forward", 10, 200, MAIN),
        span("user_annotation", "backward", 300, 500, MAIN),
        span("user_annotation", "load", 5, 900, LOADER),
        span("user_annotation", "poll", 5, 900, OTHER),
        op("aten::mm", 20, 30, MAIN, 1, number),
        *launch(1, 25, MAIN),
        op(name_of_node, 400, 50, ENGINE, 2, number, forward_thread),
        *launch(2, 410, ENGINE),
        op("torch::autograd::AccumulateGrad", 460, 80, ENGINE, 3),
        span("user_annotation", "nccl:all_reduce", 470, 40, ENGINE),
        *launch(3, 480, ENGINE),
        *launch(4, 520, ENGINE),
        *launch(5, 600, ENGINE),  # a hook behind the last node
    ]


PATHS = [
    "ProfilerStep#1/forward",
    "ProfilerStep#1/backward",
    "ProfilerStep#1/backward/nccl:all_reduce",
    "ProfilerStep#1/backward",
    "ProfilerStep#1/backward",
]


def opened(tmp_path: Path, events: list[dict[str, Any]]) -> cuptiprof.Result:
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    return cuptiprof.open(tmp_path / "t.json")


@pytest.mark.parametrize(
    "node,number,forward_thread,arrows",
    [
        ("autograd::engine::evaluate_function: MmBackward0", 7, 0, False),  # sequence numbers
        ("autograd::engine::evaluate_function: MmBackward0", -1, 0, True),  # arrows
        ("MmBackward0", 7, 1, False),  # older traces: no name of the engine's
        ("MmBackward", 7, 0, False),
        ("MyFunctionBackward", -1, 0, True),
        ("a hook by no such name", 7, 1, False),  # only torch's number of the forward thread
    ],
)
def test_backward_lies_where_it_was_called(
    node: str, number: int, forward_thread: int, arrows: bool, tmp_path: Path
) -> None:
    events = ddp_step(node, number, forward_thread)
    result = opened(tmp_path, events + (arrow(1, (MAIN, 20), (ENGINE, 400)) if arrows else []))
    assert result.kernels["region"].tolist() == PATHS
    assert result.kernels["thread"].tolist() == [MAIN, ENGINE, ENGINE, ENGINE, ENGINE]
    assert result.kernels["backward"].tolist() == [0, 1, 1, 1, 0]
    reduce = result.regions.row(int(np.flatnonzero(result.regions["name"] == "nccl:all_reduce")[0]))
    assert reduce["path"] == PATHS[2] and reduce["depth"] == 2
    assert result.collectives["region"].tolist() == [PATHS[2]]


def test_two_threads_that_call_backward(tmp_path: Path) -> None:
    """Each node belongs to the thread on which its forward operator ran."""
    events = [
        *(span("user_annotation", f"worker {i}", 0, 1000, i) for i in (1, 2)),
        *(op("aten::mm", 10, 5, i, i, 10 * i) for i in (1, 2)),
        *(
            op("autograd::engine::evaluate_function: MmBackward0", 400 + 100 * i, 50, ENGINE, 10 + i, 10 * i)
            for i in (1, 2)
        ),
        *(e for i in (1, 2) for e in launch(i, 410 + 100 * i, ENGINE)),
    ]
    assert opened(tmp_path, events).kernels["region"].tolist() == ["worker 1", "worker 2"]


def test_numbers_that_several_threads_have(tmp_path: Path) -> None:
    """Torch's number of the forward thread says whose they are: that of the thread with most of the sequence numbers."""
    node = "autograd::engine::evaluate_function: MmBackward0"
    events = [
        *(span("user_annotation", name, 0, 1000, tid) for name, tid in (("train", MAIN), ("validate", OTHER))),
        *(op("aten::mm", 10 * i, 5, MAIN, i, i) for i in (1, 2, 3)),
        *(op("aten::mm", 10 * i, 5, OTHER, 10 + i, i) for i in (1, 2)),
        *(op(node, 300 + 100 * i, 50, ENGINE, 20 + i, i, 1) for i in (1, 2)),
        *(e for i in (1, 2) for e in launch(i, 310 + 100 * i, ENGINE)),
        op(node, 700, 50, ENGINE, 30, 3, 1),
    ]
    result = opened(tmp_path, events)
    assert result.kernels["region"].tolist() == ["train", "train"]
    # Which operator it was stays unknown: any could be meant.
    assert result.operators["forward"].tolist()[5:] == [0, 0, 3]


def test_where_backward_is_called_outside_of_any_region(tmp_path: Path) -> None:
    """It is that of the forward region whose operators made the nodes, and marked as backward."""
    events = [
        span("user_annotation", "layer 1", 0, 100, MAIN),
        span("user_annotation", "layer 2", 100, 100, MAIN),
        op("aten::mm", 10, 5, MAIN, 1, 1),
        op("aten::mm", 110, 5, MAIN, 2, 2),
        op("autograd::engine::evaluate_function: MmBackward0", 400, 50, ENGINE, 3, 2),
        *launch(1, 410, ENGINE),
        op("autograd::engine::evaluate_function: MmBackward0", 500, 50, ENGINE, 4, 1),
        *launch(2, 510, ENGINE),
    ]
    result = opened(tmp_path, events)
    assert result.kernels["region"].tolist() == ["layer 2", "layer 1"] and result.kernels["backward"].tolist() == [1, 1]


def test_backward_on_the_thread_that_calls_it(tmp_path: Path) -> None:
    """On the CPU: that thread works for itself, and the others' regions are not its."""
    events = [
        span("user_annotation", "other", 0, 1000, OTHER),
        op("aten::mm", 10, 5, MAIN, 1, 1),
        op("autograd::engine::evaluate_function: MmBackward0", 400, 50, MAIN, 2, 1),
        *launch(1, 410, MAIN),
        *launch(2, 700, MAIN),
    ]
    result = opened(tmp_path, events)
    assert result.kernels["region"].tolist() == ["", ""] and result.kernels["backward"].tolist() == [1, 0]


@pytest.mark.parametrize("name", ["train-v100", "sampled-nccl", "alexnet-a100"])
def test_no_time_is_without_a_region(name: str) -> None:
    kernels = cuptiprof.open(trace_path(name)).kernels
    assert kernels["duration"][kernels["region"] == ""].sum() == 0


def test_an_amd_gpu() -> None:
    result = cuptiprof.open(DATA / "devices" / "mi250-train.json.gz")
    assert (
        set(result.api_calls["name"]) >= {"hipLaunchKernel", "hipMemcpyWithStream"} and result.api_calls["cbid"].all()
    )
    assert len(result.kernels) == 14 and result.kernels["thread"].all()
    # Configurations are those of the calls.
    first = result.kernels.row(0)
    assert (result.kernels["grid_x"][0], result.kernels["block_x"][0]) == (3, 128) and first["name"].startswith(
        "void at::"
    )
    assert result.markers["category"].tolist() == ["gpu_user_annotation"] * 2
    assert json.loads(result.markers["metadata"][0]) == {"device": 2, "stream": 0}
    assert (result.operators["forward"] != 0).sum() == 8 and not result.losses


def test_an_mtia() -> None:
    result = cuptiprof.open(DATA / "devices" / "mtia-inference.json.gz")
    assert (len(result.memcpys), len(result.kernels), len(result.api_calls)) == (877, 97, 823)
    assert result.memcpys["bytes"].sum() > 0 and set(result.memcpys["copy_kind"]) <= {1, 2, 8}
    assert set(result.kernels["name"]) == {"remote", "merge", "pe_exe"}
    assert len(result.synchronizations) == 48 and result.metadata["not_kept"] == {"event_record": 291}
    assert (
        result.losses["orphan_correlations"]
        == (result.kernels["thread"] == 0).sum() + (result.memcpys["thread"] == 0).sum()
    )


def test_a_trace_of_the_cpu_alone() -> None:
    result = cuptiprof.open(DATA / "devices" / "cpu-only.json.gz")
    assert (len(result.kernels), len(result.operators), len(result.regions), len(result.collectives)) == (0, 4, 11, 10)
    assert "imported from" in str(result.report("overview"))


def test_counters_of_a_trace_are_counters() -> None:
    result = cuptiprof.open(trace_path("counters-a100"))
    assert len(result.metric_ranges) == 77 and len(result.metrics) == 77 * 9 and not result.losses
    name = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"
    assert result.counters[name][0] == 4866048 and name in str(result.report("metrics-long"))


def test_memory_that_torchs_allocator_gave(tmp_path: Path) -> None:
    def memory(ts: float, size: int, device_type: int, address: int) -> dict[str, Any]:
        args = {"Bytes": size, "Device Type": device_type, "Device Id": 0, "Addr": address, "Total Allocated": 0}
        return {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "ts": ts,
            "pid": 1,
            "tid": MAIN,
            "args": args,
        }

    events = [
        span("user_annotation", "step", 0, 100, MAIN),
        op("aten::empty", 10, 20, MAIN, 1),
        memory(15, 512, 1, 4096),
        memory(50, -512, 1, 4096),
        memory(16, 64, 0, 99),
    ]
    result = opened(tmp_path, events)
    rows = list(result.allocator_events.rows())
    assert [(r["bytes"], r["address"], r["operator"], r["region"]) for r in rows] == [
        (512, 4096, "aten::empty", "step"),
        (512, 4096, "", "step"),
    ]
    assert [r["action"] for r in rows] == [1, 3] and result.metadata["not_kept"] == {"[memory] of the CPU": 1}
    assert "512" in str(result.report("allocator"))
