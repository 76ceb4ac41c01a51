"""Operators of imported traces and by hand: views by name, by shapes and by module, and slices in Chrome traces."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, trace_path
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.operator_work.flops import operator_flops
from cuptiprof.data.result import Result

# TensorBoard's plugin (pytorch/kineto, tb_plugin) of the same trace: calls, us of the device itself and altogether, us of the host
# itself and altogether, tensor cores eligible, % of the device's time on them.
PLUGIN = {
    "nccl:all_reduce": (12, 4749, 4749, 250, 334, "no", 0.0),
    "aten::cudnn_batch_norm": (9, 3304, 3304, 238, 289, "no", 96.13),
    "aten::mm": (18, 3284, 3284, 413, 536, "yes", 84.04),
    "aten::addmm": (13, 1811, 1811, 298, 382, "yes", 71.23),
    "aten::softmax": (11, 1428, 1428, 234, 305, "no", 67.86),
    "aten::copy_": (6, 331, 331, 167, 210, "no", 0.0),
    "aten::add_": (9, 325, 325, 195, 248, "no", 42.15),
    "aten::zero_": (6, 23, 23, 137, 181, "no", 0.0),
}


def test_as_tensorboards_plugin() -> None:
    rows = cuptiprof.open(DATA / "ranks" / "rank0.json.gz").report("operators").rows
    got = {
        row["operator"]: (
            row["calls"],
            *(row[key] / 1000 for key in ("device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns")),
            row["tensor_eligible"],
            round(row["tensor_self_percent"], 2),
        )
        for row in rows
    }
    assert got == PLUGIN and all(row["tensor_total_percent"] == row["tensor_self_percent"] for row in rows)


@pytest.fixture(scope="module")
def train() -> Result:
    return cuptiprof.open(trace_path("train-v100"))


@pytest.fixture(scope="module")
def original() -> list[dict[str, Any]]:
    with gzip.open(trace_path("train-v100"), "rt") as file:
        return [e for e in json.load(file)["traceEvents"] if "cat" in e]


def test_every_operator_is_there(train: Result, original: list[dict[str, Any]]) -> None:
    events = {e["args"]["External id"]: e for e in original if e["cat"] == "cpu_op"}
    operators = train.operators
    assert sorted(operators["instance"].tolist()) == sorted(events)
    for row in operators.rows():
        event = events[row["instance"]]
        assert (row["name"], row["thread"]) == (event["name"], event["tid"])
        assert row["sequence"] == event["args"].get("Sequence number", -1) + 1


def test_work_belongs_to_the_operator_that_kineto_names(train: Result, original: list[dict[str, Any]]) -> None:
    external = {
        e["args"]["correlation"]: e["args"]["External id"] for e in original if e["cat"] in ("kernel", "gpu_memcpy")
    }
    for table in (train.kernels, train.memcpys):
        of_kineto = [external[c] for c in table["correlation_id"].tolist()]
        assert table["operator_instance"].tolist() == of_kineto
    first = train.kernels.row(int(np.flatnonzero(train.kernels["backward"])[0]))
    assert first["operator"].startswith("autograd::engine::evaluate_function: ")


def test_backward_is_joined_by_the_arrows_of_the_file(train: Result, original: list[dict[str, Any]]) -> None:
    by_place = {(e["tid"], str(e["ts"])): e["args"]["External id"] for e in original if e["cat"] == "cpu_op"}
    ends: dict[int, dict[str, int]] = {}
    for e in original:
        if e["cat"] == "fwdbwd":
            ends.setdefault(e["id"], {})[e["ph"]] = by_place[e["tid"], str(e["ts"])]
    forward = dict(zip(train.operators["instance"].tolist(), train.operators["forward"].tolist(), strict=True))
    assert len(ends) == 905 and all(forward[pair["f"]] == pair["s"] for pair in ends.values())
    inside = train.operators.where(train.operators["backward"] == 1)
    assert set(inside["thread"].tolist()) == {e["tid"] for e in original if e["name"].startswith("autograd::engine")}


def test_by_sequence_number_where_there_are_no_arrows(tmp_path: Path) -> None:
    def op(name: str, ts: int, tid: int, key: int, number: int, forward_thread: int) -> dict[str, Any]:
        args = {"External id": key, "Sequence number": number, "Fwd thread id": forward_thread}
        return {"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": 5, "pid": 1, "tid": tid, "args": args}

    events = [
        op("aten::conv2d", 0, 1, 10, 7, 0),
        op("aten::convolution", 1, 1, 11, 7, 0),
        op("ConvolutionBackward0", 50, 2, 12, 7, 1),
        op("aten::mm", 20, 1, 13, 8, 0),
        op("aten::mm", 20, 3, 14, 8, 0),  # of two threads with the number neither is meant more
        op("MmBackward0", 60, 2, 15, 8, 1),
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    operators = cuptiprof.open(tmp_path / "t.json").operators
    forward = dict(zip(operators["instance"].tolist(), operators["forward"].tolist(), strict=True))
    assert forward == {10: 0, 11: 0, 12: 11, 13: 0, 14: 0, 15: 0}


def test_chrome_traces_have_them(train: Result, original: list[dict[str, Any]], tmp_path: Path) -> None:
    train.export(tmp_path / "t.json.gz")
    with gzip.open(tmp_path / "t.json.gz", "rt") as file:
        events = [e for e in json.load(file)["traceEvents"] if "cat" in e]

    def operators(of: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        keys = ("External id", "Sequence number")
        return Counter((e["name"], e["tid"], *(e["args"].get(k) for k in keys)) for e in of if e["cat"] == "cpu_op")

    assert operators(events) == operators(original)
    arrows = Counter((e["ph"], e["tid"]) for e in events if e["cat"] == "fwdbwd")
    assert arrows == Counter((e["ph"], e["tid"]) for e in original if e["cat"] == "fwdbwd")
    places = {(e["tid"], str(e["ts"])): e["args"]["External id"] for e in events if e["cat"] == "cpu_op"}
    pairs: dict[int, dict[str, int]] = {}
    for e in events:
        if e["cat"] == "fwdbwd":
            pairs.setdefault(e["id"], {})[e["ph"]] = places[e["tid"], str(e["ts"])]
    forward = dict(zip(train.operators["instance"].tolist(), train.operators["forward"].tolist(), strict=True))
    assert len(pairs) == 905 and all(forward[pair["f"]] == pair["s"] for pair in pairs.values())
    again = cuptiprof.open(tmp_path / "t.json.gz")
    first = (train.operators["start"].min(), again.operators["start"].min())
    for column in ("start", "end", "forward", "backward", "parent"):
        less = first if column in ("start", "end") else (0, 0)
        was, is_ = (by_instance(table, column, base) for table, base in zip((train, again), less, strict=True))
        assert was == is_, column
    assert again.report("operators").rows == train.report("operators").rows


def by_instance(result: Result, column: str, less: int) -> dict[int, int]:
    table = result.operators
    return dict(zip(table["instance"].tolist(), (table[column] - less).tolist(), strict=True))


def by_hand() -> Result:
    """conv2d and mm, forward on thread 1, backward on thread 2; a region of the user's in a step."""
    operators = [
        {"name": "aten::conv2d", "start": 0, "end": 100, "instance": 1, "thread": 1, "sequence": 5, "module": "net.conv",
         "shapes": "[[2, 4, 8, 8], [6, 2, 3, 3], [6], [], [], [], []]"},
        {"name": "aten::convolution", "start": 10, "end": 90, "instance": 2, "parent": 1, "thread": 1, "sequence": 5,
         "module": "net.conv", "shapes": "[[2, 4, 8, 8], [6, 2, 3, 3], [6], []]"},
        {"name": "aten::addmm", "start": 200, "end": 300, "instance": 3, "thread": 1, "sequence": 6, "module": "net.head",
         "shapes": "[[5], [3, 4], [4, 5], [], []]"},
        {"name": "aten::addmm", "start": 400, "end": 440, "instance": 4, "thread": 1, "shapes": "[[7], [1, 2], [2, 7], [], []]",
         "module": "net.head"},
        {"name": "aten::add", "start": 450, "end": 460, "instance": 5, "thread": 1, "shapes": "[[2, 3], [], []]"},
        {"name": "ConvolutionBackward0", "start": 500, "end": 600, "instance": 6, "thread": 2, "sequence": 5, "forward": 2,
         "scope": 1, "backward": 1, "shapes": "[[2, 6, 6, 6]]", "module": "net.conv"},
        {"name": "mine", "start": 395, "end": 470, "instance": 7, "thread": 1, "scope": 7},
    ]  # fmt: skip
    kernels = [
        {"name": "ampere_h16816gemm", "start": 1000, "end": 1600, "operator_instance": 2, "correlation_id": 1, "module": "net.conv"},
        {"name": "elementwise", "start": 1600, "end": 1700, "operator_instance": 2, "correlation_id": 2, "module": "net.conv"},
        {"name": "sgemm", "start": 1700, "end": 2000, "operator_instance": 3, "correlation_id": 3, "module": "net.head"},
        {"name": "wgrad", "start": 2000, "end": 2400, "operator_instance": 6, "correlation_id": 4, "module": "net.conv",
         "backward": 1},
    ]  # fmt: skip
    calls = [{"name": "cudaLaunchKernel", "start": 20, "end": 45, "thread": 1, "correlation_id": 1}]
    return make_result({"operators": operators, "kernels": kernels, "api_calls": calls})


def test_totals_hold_what_was_called() -> None:
    rows = {row["operator"]: row for row in by_hand().report("operators").rows}
    conv, inner = rows["aten::conv2d"], rows["aten::convolution"]
    assert (conv["device_self_ns"], conv["device_total_ns"]) == (0, 700)
    assert (inner["device_self_ns"], inner["host_self_ns"], inner["host_total_ns"]) == (700, 55, 80)
    assert conv["host_self_ns"] == 20 and round(conv["tensor_total_percent"], 2) == 85.71
    assert rows["aten::addmm"]["calls"] == 2 and "mine" not in rows


def test_by_shapes() -> None:
    rows = by_hand().report("operators-by-shape").rows
    found = {row["shapes"]: row["calls"] for row in rows if row["operator"] == "aten::addmm"}
    assert found == {"[[5], [3, 4], [4, 5], [], []]": 1, "[[7], [1, 2], [2, 7], [], []]": 1}
    assert "Input shapes" in str(by_hand().report("operators-by-shape")) and "Input shapes" not in str(
        by_hand().report("operators")
    )


def test_by_module() -> None:
    rows = {row["path"]: row for row in by_hand().report("modules").rows}
    assert rows["net"]["device_total_ns"] == 1400 and rows["net"]["device_self_ns"] == 0
    assert rows["net.conv"]["device_total_ns"] == 1100 and rows["net.conv"]["backward_ns"] == 400
    assert rows["net.conv"]["operators"] == 3 and rows["net.conv"]["host_self_ns"] == 200
    assert rows["net.head"]["host_total_ns"] == 140 and rows[""]["operators"] == 1


def test_modules_that_only_launches_know() -> None:
    """As a session has them: of backward's work the forward operator's, of operators that of what they launched."""
    operators = [
        {"name": "aten::linear", "start": 0, "end": 100, "instance": 1},
        {"name": "aten::addmm", "start": 10, "end": 90, "instance": 2, "parent": 1},
        {
            "name": "AddmmBackward0",
            "start": 500,
            "end": 600,
            "instance": 3,
            "thread": 2,
            "forward": 2,
            "scope": 1,
            "backward": 1,
        },
    ]
    kernels = [
        {"name": "k", "start": 0, "end": 10, "operator_instance": 2, "module": "net.head", "correlation_id": 1},
        {"name": "k", "start": 10, "end": 15, "operator_instance": 3, "backward": 1, "correlation_id": 2},
    ]
    rows = {
        row["path"]: row for row in make_result({"operators": operators, "kernels": kernels}).report("modules").rows
    }
    assert set(rows) == {"net", "net.head"} and rows["net.head"]["operators"] == 3
    assert (rows["net.head"]["device_self_ns"], rows["net.head"]["backward_ns"], rows["net.head"]["host_self_ns"]) == (
        15,
        5,
        200,
    )


def test_what_was_only_named_at_launches() -> None:
    kernels = [
        {"name": "k", "start": 0, "end": 10, "operator": "aten::linear/aten::addmm"},
        {"name": "k", "start": 10, "end": 15, "operator": "aten::linear"},
        {"name": "k", "start": 15, "end": 16},
    ]
    rows = {row["operator"]: row for row in make_result({"kernels": kernels}).report("operators").rows}
    assert {name: (row["device_self_ns"], row["device_total_ns"], row["calls"]) for name, row in rows.items()} == {
        "aten::linear": (5, 15, None),
        "aten::addmm": (10, 10, None),
    }


def test_nothing_was_recorded() -> None:
    empty = make_result({"kernels": [{"name": "k", "start": 0, "end": 10}]})
    assert 'sources="operators"' in str(empty.report("operators")) and 'sources="modules"' in str(
        empty.report("modules")
    )


def test_flops_by_torchs_formulas() -> None:
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    convolution = torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        x, a, b = torch.randn(2, 4, 9, 8), torch.randn(3, 4), torch.randn(3, 4, 5)
        convolution(x).sum().backward()
        (
            a @ a.T,
            torch.addmm(a, a @ a.T, a),
            torch.bmm(b, b.mT),
            torch.baddbmm(torch.randn(3, 4, 4), b, b.mT),
            a * a,
            a + a,
        )
    events = [e for e in prof.events() if e.name.startswith("aten::") or e.name == "ConvolutionBackward0"]
    made = next(i for i, e in enumerate(events, 1) if e.name == "aten::convolution")
    rows = [
        {"name": e.name, "instance": i, "shapes": json.dumps(e.input_shapes), "scope": e.scope,
         "parent": made - 1 if i == made else 0, "forward": made if e.name == "ConvolutionBackward0" else 0}
        for i, e in enumerate(events, 1)
    ]  # fmt: skip
    got = operator_flops(make_result({"operators": rows})).tolist()
    assert got == [e.flops for e in events] and len([n for n in got if n]) >= 7


@pytest.mark.parametrize(
    "shapes", ["{", "3", "[[1e9]]", "[[-1, 2], [2, 2]]", "[" * 5000, '[["a"]]', f"[[{2**80}, 2], [2, 2]]"]
)
def test_damaged_shapes_are_no_flops(shapes: str) -> None:
    result = make_result({"operators": [{"name": "aten::mm", "instance": 1, "shapes": shapes}]})
    assert operator_flops(result).tolist() == [0]
