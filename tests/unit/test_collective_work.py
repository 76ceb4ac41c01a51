"""Collectives: kernels by the launch inside the call, bandwidths as nccl-tests define them, and what traces of torch.profiler say."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import trace_path
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.collectives.collective_work import bus_factor, kernels_of_collectives, message_bytes
from cuptiprof.data.element_types import element_count, element_size, type_name
from cuptiprof.session.collective_calls import CollectiveCall, GroupFacts
from cuptiprof.session.collective_records import CollectiveRecord, outside_of
from cuptiprof.session.collective_tables import add_collectives

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def call(instance: int, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"instance": instance, "start": start, "end": end, "thread": 1, "name": "all_reduce", "group": "0", "group_size": 4,
            "dtype": "float32", "in_bytes": 4000, "out_bytes": 4000, "ranks": "[0,1,2,3]", "backend": "nccl", **more}  # fmt: skip


def test_kernels_are_the_call_s_that_launched_them() -> None:
    kernels = [
        {"name": name, "correlation_id": c, "start": s, "end": s + 10}
        for name, c, s in (
            (NCCL, 5, 1000),
            ("gemm", 6, 1010),
            (NCCL, 7, 1020),
            (NCCL, 8, 1030),
            (NCCL, 99, 1040),
            (NCCL, 9, 1050),
        )
    ]
    api = [
        {"name": "cudaLaunchKernelExC", "correlation_id": c, "start": s, "end": s + 1, "thread": t}
        for c, s, t in ((9, 310, 1), (7, 150, 2), (5, 110, 1), (6, 120, 1), (8, 250, 1))
    ]
    result = make_result({"collectives": [call(3, 300, 400), call(1, 100, 200)], "kernels": kernels, "api_calls": api})
    found = kernels_of_collectives(result.collectives, result.kernels, result.api_calls)
    # In turn: inside; no communication; another thread; between two calls; no record of the call; inside the later one.
    assert found.tolist() == [1, 0, 0, 0, 0, 3]


@pytest.mark.parametrize(
    "name,ranks,factor",
    [("all_reduce", 8, 1.75), ("allreduce_", 2, 1.0), ("_allgather_base", 4, 0.75), ("reduce_scatter_tensor", 4, 0.75),
     ("all_to_all_single", 4, 0.75), ("broadcast", 8, 1.0), ("send", 2, 1.0), ("all_reduce", 1, 0.0)],
)  # fmt: skip
def test_bus_bandwidth_is_nccl_tests_s(name: str, ranks: int, factor: float) -> None:
    assert bus_factor(name, ranks) == factor
    assert math.isnan(bus_factor(name, 0))


def test_sizes_are_those_of_nccl_tests() -> None:
    assert message_bytes("all_gather", 10, 40) == 40 and message_bytes("reduce_scatter", 40, 10) == 40
    assert message_bytes("all_reduce", 40, 40) == 40 and message_bytes("recv", 0, 7) == 7


def test_the_report_s_bandwidths() -> None:
    kernels = [
        {"name": NCCL, "start": 1000, "end": 1400, "collective": 1},
        {"name": NCCL, "start": 1500, "end": 2000, "collective": 1},
        {"name": NCCL, "start": 5000, "end": 8000, "collective": 2},
        {"name": NCCL, "start": 9000, "end": 9100},
    ]
    rows = [call(1, 0, 100), call(2, 200, 500), call(3, 600, 700, name="broadcast", group="1", group_description="tp")]
    result = make_result({"collectives": rows, "kernels": kernels})
    view = result.report("collectives")
    row = next(r for r in view.rows if r["name"] == "all_reduce")
    assert (row["calls"], row["gpu_ns"], row["host_ns"]) == (2, 2000, 200)  # 1,000 and 3,000 ns
    assert row["algorithm_bandwidth"] == 4000 / 2e-6 and row["bus_bandwidth"] == 1.5 * 4000 / 2e-6
    text = str(view)
    assert "group 1 (tp, nccl), ranks [0,1,2,3]" in text and "3.0000GB/s" in text
    assert "1 communicating kernels were launched by none of these calls." in text


def test_a_recorded_trace_of_nccl() -> None:
    """One rank alone, DistributedDataParallel's all-reduces: NCCL has no kernels for them."""
    path = trace_path("train-v100")
    result = cuptiprof.open(path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    comms = sorted((e for e in events if e.get("name") == "record_param_comms"), key=lambda e: float(e["ts"]))
    said = [e["args"] for e in comms if e["args"].get("Collective name") != "wait"]
    rows = list(result.collectives.rows())
    assert [r["in_bytes"] for r in rows] == [element_size(a["dtype"]) * a["In msg nelems"] for a in said]
    assert len(rows) == 35
    assert {(r["name"], r["dtype"], r["group_size"], r["ranks"], r["backend"]) for r in rows} == {
        (a["Collective name"], type_name(a["dtype"]), 1, "[0]", "nccl") for a in said
    }
    assert not result.kernels["collective"].any() and "allreduce" in str(result.report("collectives"))


def test_a_recorded_trace_of_an_older_torch() -> None:
    """A rank of 128: what annotations say, and every kernel of NCCL tied to its call by the launch inside of it."""
    result = cuptiprof.open(trace_path("sampled-nccl"))
    rows = list(result.collectives.rows())
    assert Counter(r["name"] for r in rows) == {"all_reduce": 4, "all_to_all": 4, "_all_gather_base": 2}
    assert {r["backend"] for r in rows} == {"nccl"} and rows[0]["in_bytes"] > 0
    nccl = np.array([name.startswith("nccl") for name in result.kernels["name"]])
    of = result.kernels["collective"]
    assert nccl.sum() == 10 and not of[~nccl].any()
    assert sorted(of[nccl].tolist()) == list(range(1, 11))  # each call has one
    assert "busbw" in str(result.report("collectives"))


def trace(*events: dict[str, Any]) -> bytes:
    base = {"ph": "X", "pid": 1, "tid": 7, "ts": 10, "dur": 5}
    return json.dumps({"traceEvents": [{**base, **e} for e in events]}).encode()


ARGS = {
    "Collective name": "_allgather_base", "dtype": "BFloat16", "In msg nelems": 10, "Out msg nelems": 80, "Group size": 8,
    "Process Group Name": "3", "Process Group Description": "mesh_dp", "Process Group Ranks": "[0, 2, 4, 6, 8, 10, 12, 14]",
    "Seq": 41, "Is asynchronized op": True,
}  # fmt: skip


def opened(tmp_path: Path, data: bytes) -> Any:
    (tmp_path / "t.json").write_bytes(data)
    return cuptiprof.open(tmp_path / "t.json")


def test_a_newer_trace(tmp_path: Path) -> None:
    gloo = {
        "cat": "user_annotation",
        "tid": 9,
        "name": "gloo:all_reduce",
        "args": {"Input type": ["float"], "Input Dims": [[100, 2]]},
    }
    long = {**ARGS, "Process Group Ranks": "[0, 1, ..., 63]", "Collective name": "recv", "Src Rank": 5, "Dst Rank": 2}
    comms = {"cat": "cpu_op", "name": "record_param_comms"}
    wait = {**comms, "args": {"Collective name": "wait"}}
    result = opened(tmp_path, trace({**comms, "args": ARGS}, gloo, {**comms, "args": long, "ts": 30}, wait))
    first, second, third = result.collectives.rows()
    assert first["name"] == "_allgather_base" and (first["in_bytes"], first["out_bytes"]) == (20, 160)
    assert (first["group"], first["group_description"], first["sequence"], first["is_async"]) == ("3", "mesh_dp", 42, 1)
    assert first["ranks"] == "[0,2,4,6,8,10,12,14]" and (first["start"], first["end"], first["thread"]) == (
        10_000,
        15_000,
        7,
    )
    assert (second["name"], second["backend"], second["dtype"], second["in_bytes"]) == (
        "all_reduce",
        "gloo",
        "float32",
        800,
    )
    assert (third["peer"], third["ranks"]) == (6, "")


@pytest.mark.parametrize(
    "changed",
    [{"In msg nelems": -1}, {"Out msg nelems": 1 << 62}, {"Group size": 1 << 40}],
)
def test_numbers_that_cannot_be_are_counted(tmp_path: Path, changed: dict[str, Any]) -> None:
    event = {"cat": "cpu_op", "name": "record_param_comms", "args": {**ARGS, **changed}}
    result = opened(tmp_path, trace(event, {"cat": "cpu_op", "name": "aten::mm", "args": {}}))
    assert not len(result.collectives) and result.losses["unknown_records"] == 1


@pytest.mark.parametrize("ranks", ["[" * 100_000, "[1, -2]", "{}", "[true, []]", 5, None, "[1e400]"])
def test_ranks_that_are_none(tmp_path: Path, ranks: Any) -> None:
    event = {"cat": "cpu_op", "name": "record_param_comms", "args": {**ARGS, "Process Group Ranks": ranks}}
    result = opened(tmp_path, trace(event))
    assert len(result.collectives) + result.losses["unknown_records"] == 1
    str(result.report("collectives"))


def test_types_and_shapes() -> None:
    assert (type_name("c10::Half"), element_size("Half"), element_size("long int"), element_size("TensorList")) == (
        "float16",
        2,
        8,
        0,
    )
    assert element_count([3, 4]) == 12 and element_count([[2], [3, 3]]) == 11 and element_count([]) == 1
    for wrong in ([-1], ["x"], 5, [1 << 30, 1 << 30, 1 << 30], [1 << 50]):
        with pytest.raises((TypeError, ValueError)):
            element_count(wrong)


def operator(instance: int, name: str, start: int, **more: Any) -> dict[str, Any]:
    return {"instance": instance, "name": name, "start": start, "end": start + 50, "thread": 1, **more}


def test_what_c_plus_plus_calls_by_itself_is_an_operator_s() -> None:
    group = GroupFacts("0", "default_pg", "gloo", "[0,1]", 2)
    followed = CollectiveCall(100, 200, 1, "all_reduce", group, "float32", 40, 40, -1, 3, True)
    base = {"shapes": "[[8], [4], [], []]", "dtypes": '["float", "float", "", "Scalar"]'}
    operators = [
        operator(1, "c10d::allreduce_", 120, module="head"),
        operator(2, "c10d::allreduce_", 300, module="", region="bwd", region_instance=9),
        operator(3, "c10d::_allgather_base_", 400, **base),
        operator(4, "aten::mm", 500),
        operator(6, "PythonDispatchMode", 305, parent=2),
        operator(7, "c10d::allreduce_", 306, parent=6),
        operator(5, "c10d::barrier", 120, thread=2),
    ]
    result = make_result({"operators": operators, "regions": [], "kernels": []})
    losses: dict[str, int] = {"budget_evicted": 0}
    add_collectives([followed], 4, result.tables, losses, None)
    rows = list(result.tables["collectives"].rows())
    keys = (
        "name",
        "group",
        "backend",
        "dtype",
        "in_bytes",
        "out_bytes",
        "operator_instance",
        "module",
        "region",
        "sequence",
    )
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("all_reduce", "0", "gloo", "float32", 40, 40, 1, "head", "", 4),
        ("barrier", "", "", "", 0, 0, 5, "", "", 0),
        ("allreduce_", "", "", "", 0, 0, 2, "", "bwd", 0),
        ("_allgather_base_", "", "", "float32", 16, 32, 3, "", "", 0),
    ]
    assert losses["budget_evicted"] == 4 and [row["instance"] for row in rows] == [1, 2, 3, 4]


def test_an_operator_around_what_its_backend_recorded() -> None:
    """It says which operator and module that is, once or of several, and is no row of its own."""
    group = GroupFacts("0", "default_pg", "nccl", "[0,1]", 2)
    recorded = [
        CollectiveCall(start, start + 10, thread, "allreduce", group, "float32", 40, 40, -1, start, True)
        for thread, start in ((1, 110), (1, 125), (1, 310), (2, 110))
    ]
    operators = [operator(1, "c10d::allreduce_coalesced_", 100, module="head"), operator(2, "c10d::allreduce_", 300)]
    result = make_result({"operators": operators, "regions": [], "kernels": []})
    add_collectives(recorded, 0, result.tables, {"budget_evicted": 0}, None)
    rows = list(result.tables["collectives"].rows())
    assert [(row["thread"], row["start"], row["operator_instance"], row["module"]) for row in rows] == [
        (1, 110, 1, "head"), (2, 110, 0, ""), (1, 125, 1, "head"), (1, 310, 2, ""),
    ]  # fmt: skip


def test_records_of_followed_calls_are_these() -> None:
    def record(thread: int, start: int) -> CollectiveRecord:
        return CollectiveRecord(start, start + 5, thread, "allreduce", "0", "", "float", 8, 8, 0, 4, 2, 1, 3, False)

    records = [record(1, 105), record(1, 130), record(1, 205), record(2, 105), record(2, 400), record(3, 90)]
    calls = [(1, 100, 120), (1, 200, 220), (2, 50, 60)]
    alone = outside_of(records, calls, {2: 390, 3: 100})
    assert [(one.thread, one.start) for one in alone] == [(1, 130), (2, 105), (3, 90)]
    one = alone[0]
    assert (one.dtype, one.in_bytes, one.ranks) == ("float32", 32, [2, 3, 4, 5])
    assert one._replace(group_size=1, rank_stride=0).ranks == [2]
    for odd in (
        {"first_rank": -1},
        {"rank_stride": 0},
        {"rank_stride": -1},
        {"group_size": 0},
        {"group_size": 2**31 - 1},
    ):
        assert one._replace(**odd).ranks == []
    assert one._replace(in_elements=-1).in_bytes == 0 and one._replace(element_type="other").in_bytes == 0
