"""Flame graphs and pprof by Python stack, region, module and operator; Hatchet's literal: their numbers are those of the run."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import trace_path
from metric_results import counted, launch, values
from report_results import HOSTILE, make_result, training_step

import cuptiprof
from cuptiprof.analysis.trees.flame import NO_STACK, STACKS_BY
from cuptiprof.analysis.work.gpu_work import gpu_times
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError

KERNEL = {"stream": 7, "context": 1}


def run() -> Result:
    """Two GPUs; a kernel of everything, one of a region alone, one of nothing; a copy, a whole graph."""
    frames = [
        {
            "id": 1,
            "parent": 0,
            "file": "/app/main.py",
            "function": "<module>",
            "line": 9,
            "first_line": 1,
            "is_user": 1,
        },
        {"id": 2, "parent": 1, "file": "/app/m.py", "function": "step", "line": 4, "first_line": 3, "is_user": 1},
    ]
    return make_result(
        {
            "kernels": [
                {"name": "gemm", "start": 100, "end": 400, "correlation_id": 1, "stack": 2, "region": "step/f\\/wd",
                 "operator": "aten::linear/aten::mm", "module": "net.fc", **KERNEL},
                {"name": "gemm", "start": 400, "end": 500, "correlation_id": 2, "stack": 2, "region": "step/f\\/wd",
                 "operator": "aten::linear/aten::mm", "module": "net.fc", **KERNEL},
                {"name": HOSTILE, "start": 500, "end": 550, "correlation_id": 3, "region": "step", "device": 1, **KERNEL},
                {"name": "relu", "start": 600, "end": 607, "correlation_id": 4, "nvtx": "outer/load", **KERNEL},
            ],
            "memcpys": [{"start": 700, "end": 720, "bytes": 8, "correlation_id": 5, "copy_kind": 1, **KERNEL}],
            "graph_launches": [{"start": 800, "end": 900, "correlation_id": 6, "region": "step", "graph_id": 3, **KERNEL}],
            "api_calls": [
                {"name": "cudaLaunchKernel", "start": 9, "end": 16, "correlation_id": 1},
                {"name": "cuLaunchKernel", "start": 10, "end": 15, "correlation_id": 1},
                {"name": "cudaLaunchKernel", "start": 20, "end": 24, "correlation_id": 2},
            ],
            "stacks": frames,
        },
        {"clock_pairs": [[0, 10**18]]},
    )  # fmt: skip


def folded(result: Result, folder: Path, by: str | None) -> dict[str, int]:
    result.export(folder / "x.folded", by=by, overwrite=True)  # type: ignore[arg-type]
    lines = (folder / "x.folded").read_text().splitlines()
    return {stack: int(ns) for stack, _, ns in (line.rpartition(" ") for line in lines)}


@pytest.mark.parametrize(
    ("by", "of_gemm", "of_graph"),
    [
        ("python", "<module> (/app/main.py:9);step (/app/m.py:4)", "(no Python code)"),
        ("region", "step;f/wd", "step"),
        ("module", "net;fc", "(no module)"),
        ("operator", "aten::linear;aten::mm", "(no operator)"),
    ],
)
def test_collapsed_stacks(by: str, of_gemm: str, of_graph: str, tmp_path: Path) -> None:
    stacks = folded(run(), tmp_path, by)
    assert stacks[f"GPU 0;{of_gemm};gemm"] == 400
    assert stacks[f"GPU 0;{of_graph};[CUDA graph]"] == 100
    assert stacks[f"GPU 0;{NO_STACK[by]};relu"] == 7
    assert sum(stacks.values()) == 577


def test_the_usual_stacks_are_python_s_else_regions(tmp_path: Path) -> None:
    assert folded(run(), tmp_path, None) == folded(run(), tmp_path, "python")
    assert folded(training_step(), tmp_path, None) == folded(training_step(), tmp_path, "region")
    assert folded(training_step(), tmp_path, None) != folded(training_step(), tmp_path, "python")


@pytest.mark.parametrize("by", STACKS_BY)
def test_speedscope(by: str, tmp_path: Path) -> None:
    run().export(tmp_path / "x.speedscope.json", by=by)  # type: ignore[arg-type]
    document = json.loads((tmp_path / "x.speedscope.json").read_text())
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    found: Counter[str] = Counter()
    for profile in document["profiles"]:
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
            found[frames[sample[-1]]] += weight
        assert profile["endValue"] == sum(profile["weights"])
    assert found == {"gemm": 400, HOSTILE: 50, "relu": 7, "[CUDA memcpy HtoD]": 20, "[CUDA graph]": 100}


def test_stacks_of_what_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ResultError, match="chrome has no stacks") as refused:
        run().export(tmp_path / "t.json", by="region")
    assert "pprof" in refused.value.hint
    with pytest.raises(ResultError, match="unknown stacks 'line'"):
        run().export(tmp_path / "t.folded", by="line")  # type: ignore[arg-type]
    assert main(["export", "nowhere", "-o", str(tmp_path / "t.json"), "--by", "region"]) == 1
    assert "has no stacks" in capsys.readouterr().err and not list(tmp_path.iterdir())


# pprof: read by its definition (profile.proto), with nothing of the writer's


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        key = varint()
        assert key & 7 in (0, 2)
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint()
            yield key >> 3, data[at : at + size]
            at += size


def repeated(data: bytes) -> list[int]:
    return [value for _, value in fields(b"".join(b"\x08" + one for one in split_varints(data)))]


def split_varints(data: bytes) -> list[bytes]:
    ends = [i + 1 for i, byte in enumerate(data) if byte < 0x80]
    return [data[first:end] for first, end in zip([0, *ends], ends, strict=False)]


def profile(path: Path) -> dict[str, Any]:
    """Sample types, and samples as (names from the outermost, labels, values)."""
    whole = list(fields(gzip.decompress(path.read_bytes())))
    texts = [value.decode() for number, value in whole if number == 6]
    assert texts[0] == ""
    functions = {f[1]: (texts[f[2]], texts[f[4]]) for number, v in whole if number == 5 for f in [dict(fields(v))]}
    places = {}
    for number, value in whole:
        if number == 4:
            place = dict(fields(value))
            line = dict(fields(place[4]))
            places[place[1]] = (*functions[line[1]], line[2])
    types = [(texts[t[1]], texts[t[2]]) for number, v in whole if number == 1 for t in [dict(fields(v))]]
    samples = []
    for number, value in whole:
        if number != 2:
            continue
        parts = list(fields(value))
        stack = [places[place] for key, packed in parts if key == 1 for place in repeated(packed)]
        labels = {
            texts[label[1]]: texts[label[2]] if 2 in label else label[3]
            for key, one in parts if key == 3 for label in [dict(fields(one))]
        }  # fmt: skip
        samples.append((stack[::-1], labels, [v for key, packed in parts if key == 2 for v in repeated(packed)]))
    comments = [texts[value] for number, value in whole if number == 13]
    return {"types": types, "samples": samples, "comments": comments, **{n: v for n, v in whole if n in (9, 10)}}


def test_pprof(tmp_path: Path) -> None:
    run().export(tmp_path / "x.pb.gz")
    found = profile(tmp_path / "x.pb.gz")
    assert found["types"] == [("launches", "count"), ("gpu_time", "nanoseconds")]
    stack, labels, amounts = found["samples"][0]
    assert stack == [("<module>", "/app/main.py", 9), ("step", "/app/m.py", 4), ("gemm", "", 0)]
    assert labels == {"region": "step/f\\/wd", "device": 0, "stream": 7, "kernel": "gemm"} and amounts == [2, 400]
    assert [a for *_, a in found["samples"]] == [[2, 400], [1, 50], [1, 7], [1, 20], [1, 100]]
    assert found["samples"][1][1]["device"] == 1 and "region" not in found["samples"][2][1]
    assert found[9] == 10**18 + 9 and found[10] == 900 - 9


@pytest.mark.parametrize("by", STACKS_BY)
def test_pprof_of_a_trace_says_what_the_summary_does(by: str, tmp_path: Path) -> None:
    result = cuptiprof.open(trace_path("alexnet-a100"))
    result.export(tmp_path / "x.pb.gz", by=by)  # type: ignore[arg-type]
    times: Counter[str] = Counter()
    for stack, labels, (count, ns) in profile(tmp_path / "x.pb.gz")["samples"]:
        assert stack[-1][0] == labels["kernel"] and count > 0
        times[labels["kernel"]] += ns
    assert times == {name: of.total for name, of in gpu_times(result, True)[0].items()}


def of_counters() -> Result:
    """gemm twice (ipc 2.0 for 10,000 ns, 4.0 for 12,345 ns; 100 and 300 instructions); sgd was not counted."""
    metrics = [{"name": "inst_executed", "unit": "instruction", "value_kind": "count"},
               {"name": "ipc", "unit": "instruction/cycle", "value_kind": "ratio"}]  # fmt: skip
    rows = values(1, ipc=2.0, inst_executed=100) + values(2, ipc=4.0, inst_executed=300)
    return counted([launch(1, 2), launch(2, 3)], rows, metrics=metrics)


def test_counters_that_add_up_are_sample_types(tmp_path: Path) -> None:
    of_counters().export(tmp_path / "x.pb.gz")
    found = profile(tmp_path / "x.pb.gz")
    assert found["types"][2:] == [("inst_executed", "instruction")]
    by_name = {stack[-1][0]: amounts[2] for stack, _, amounts in found["samples"]}
    assert by_name["gemm(float*, float*, int)"] == 400 and by_name["sgd"] == 0


# Hatchet


def literal(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Metrics by path of names; checks that what is below adds up."""
    out = {}

    def walk(node: dict[str, Any], above: tuple[str, ...]) -> None:
        key = (*above, node["frame"]["name"])
        metrics = out[key] = node["metrics"] | {"type": node["frame"]["type"]}
        for name in ("time", "launches"):
            below = sum(child["metrics"][f"{name} (inc)"] for child in node["children"])
            assert metrics[f"{name} (inc)"] == metrics[name] + below
        for child in node["children"]:
            walk(child, key)

    (root,) = json.loads(path.read_text())
    walk(root, ())
    return out


def test_hatchet(tmp_path: Path) -> None:
    run().export(tmp_path / "x.hatchet.json")
    nodes = literal(tmp_path / "x.hatchet.json")
    gemm = ("GPU", "step", "f/wd", "aten::linear", "aten::mm", "cudaLaunchKernel", "gemm")
    assert [nodes[gemm[:end]]["type"] for end in range(1, 8)] == [
        "run", "region", "region", "operator", "operator", "call", "kernel",
    ]  # fmt: skip
    assert nodes[gemm]["time"] == nodes[gemm]["time (inc)"] == 400 and nodes[gemm]["launches"] == 2
    assert nodes["GPU",]["time (inc)"] == 577 and nodes["GPU",]["time"] == 0
    assert nodes["GPU", "step"]["time (inc)"] == 550 and nodes["GPU", "step", "[CUDA graph]"]["type"] == "graph"
    assert nodes["GPU", "outer", "load", "relu"]["time"] == 7  # NVTX ranges of the level "launch"
    assert nodes["GPU", "step", HOSTILE]["time"] == 50 and nodes["GPU", "[CUDA memcpy HtoD]"]["type"] == "memcpy"


def test_counters_in_hatchet(tmp_path: Path) -> None:
    of_counters().export(tmp_path / "x.hatchet.json")
    nodes = literal(tmp_path / "x.hatchet.json")
    (root, totals) = next((key, value) for key, value in nodes.items() if len(key) == 1)
    gemm = next(value for key, value in nodes.items() if key[-1].startswith("gemm"))
    mean = (2.0 * 10_000 + 4.0 * 12_345) / 22_345
    assert root == ("GPU (simulated)",)
    assert gemm["inst_executed"] == totals["inst_executed (inc)"] == 400 and totals["inst_executed"] is None
    assert gemm["ipc"] == totals["ipc (inc)"] == pytest.approx(mean)
    assert next(value for key, value in nodes.items() if key[-1] == "sgd")["ipc"] is None


def test_a_tree_deeper_than_python_s_stack(tmp_path: Path) -> None:
    path = "/".join(["r"] * 3000)
    result = make_result({"kernels": [{"name": "k", "start": 0, "end": 5, "region": path, **KERNEL}]})
    result.export(tmp_path / "x.hatchet.json")
    text = (tmp_path / "x.hatchet.json").read_text()
    assert text.count('{"frame"') == 3002 and text.count("[") == text.count("]") and text.endswith("}]")
    assert text.count('"time (inc)": 5') == 3002


@pytest.mark.parametrize(
    "name", ["x.folded", "x.speedscope.json", "x.pb.gz", "x.pb", "x.hatchet.json", "x.hatchet.json.gz"]
)
def test_runs_of_nothing_and_simulated_ones(name: str, tmp_path: Path) -> None:
    make_result({}).export(tmp_path / name)
    result = training_step()
    result.metadata["simulated"] = True
    result.export(tmp_path / name, overwrite=True)
    data = (tmp_path / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    assert b"simulated" in data.lower() or name.endswith(".folded")
