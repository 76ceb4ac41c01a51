"""The Chrome trace: exact times, rows that nest, flows, occupancy as Kineto has it, and what a failure leaves behind."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import trace_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_results import HOSTILE, config, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.export.chrome.clock import WEEK


def written(result: Result, path: Path) -> dict[str, Any]:
    result.export(path, overwrite=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        data: dict[str, Any] = json.load(file, parse_float=Decimal)
    return data


def of(data: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [e for e in data["traceEvents"] if e.get("cat") == category]


def ns(us: Any) -> int:
    """A fourth decimal may stand there for readers that cut (export.chrome.text.microseconds)."""
    value = Decimal(us) * 1000
    assert value - int(value) in (0, Decimal("0.1"))
    return int(value)


def assert_rows_nest(data: dict[str, Any]) -> None:
    """Slices of one row are disjoint or one lies in the other: what a viewer can draw."""
    rows = defaultdict(list)
    for e in data["traceEvents"]:
        if e["ph"] == "X":
            rows[e["pid"], e["tid"]].append((ns(e["ts"]), -ns(e["ts"]) - ns(e["dur"]), e["name"]))
    for slices in rows.values():
        stack: list[int] = []
        for start, minus_end, name in sorted(slices):
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or -minus_end <= stack[-1], name
            stack.append(-minus_end)


def test_a_step(tmp_path: Path) -> None:
    data = written(training_step(), tmp_path / "t.json")
    assert_rows_nest(data)
    assert data["simulated"] is True and "simulated (V100)" in data["traceName"]
    assert data["losses"] == {"pool_exhausted": 3} and data["baseTimeNanoseconds"] == 10**18 // WEEK * WEEK
    at = 10**18 % WEEK  # the run clock's 0
    kernel = next(e for e in of(data, "kernel") if e["args"]["correlation"] == 3)
    assert kernel["name"] == "gemm(float*, float*, int)" and (kernel["pid"], kernel["tid"]) == (0, 7)
    assert (ns(kernel["ts"]), ns(kernel["dur"])) == (at + 13_000, 12_345)
    assert kernel["args"]["shared memory"] == 2064 and kernel["args"]["External id"] == 2
    assert kernel["args"]["grid"] == [4, 106, 1] and kernel["args"]["blocks per SM"] == Decimal("5.3")
    assert kernel["args"]["occupancy"]["limitingFactors"] == "WARPS|REGS"
    copy = of(data, "gpu_memcpy")[0]
    assert copy["name"] == "Memcpy HtoD (Pinned -> Device)"
    assert float(copy["args"]["memory bandwidth (GB/s)"]) == 4.096
    flows = of(data, "ac2g")
    assert (
        {e["id"] for e in flows if e["ph"] == "s"} == {e["id"] for e in flows if e["ph"] == "f"} == {1, 2, 3, 4, 5, 6}
    )
    assert all(e["bp"] == "e" for e in flows if e["ph"] == "f")
    call = next(e for e in of(data, "cuda_runtime") if e["name"] == "cudaMalloc")
    assert call["args"]["return value"] == 2 and of(data, "cuda_driver")[0]["name"] == "cuLaunchKernel"
    spans = {(e["name"], e["tid"]): (ns(e["ts"]) - at, ns(e["dur"])) for e in of(data, "gpu_user_annotation")}
    # One ns more at either end; the step holds the copy, and what ran in fwd.
    assert spans["fwd", 7] == (1_949, 25_346 - 1_949)
    assert spans["step", 7] == (899, 25_346 - 899) and spans["step", 9] == (19_999, 1_002)
    sync = of(data, "cuda_sync")[0]
    assert sync["args"]["stream"] == 7 and sync["tid"] != 7


def test_overlap_gets_rows_of_its_own(tmp_path: Path) -> None:
    kernels = [
        {"name": "a", "start": 0, "end": 100, "stream": 7, "correlation_id": 1},
        {"name": "b", "start": 50, "end": 150, "stream": 7, "correlation_id": 2},
        {"name": "c", "start": 150, "end": 160, "stream": 7, "correlation_id": 3},
    ]
    data = written(make_result({"kernels": kernels}), tmp_path / "t.json")
    assert_rows_nest(data)
    rows = {e["name"]: e["tid"] for e in of(data, "kernel")}
    assert rows["a"] == rows["c"] == 7 != rows["b"]
    assert all(e["args"]["stream"] == 7 for e in of(data, "kernel"))
    names = {e["tid"]: e["args"]["name"] for e in data["traceEvents"] if e["name"] == "thread_name"}
    assert names[7] == "stream 7 " and "overlapping" in names[rows["b"]]


times = st.tuples(st.integers(1, 60), st.integers(0, 30))
gpu = st.lists(st.tuples(times, st.sampled_from([7, 8]), st.integers(0, 4)), max_size=12)
host = st.lists(st.tuples(times, st.sampled_from([70, 71])), max_size=4)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(work=gpu, regions=host, syncs=st.lists(times, max_size=3))
def test_rows_always_nest(work: Any, regions: Any, syncs: Any, tmp_path: Path) -> None:
    result = make_result(
        {
            "kernels": [
                {"name": "k", "start": s, "end": s + n, "stream": on, "region_instance": r if r <= len(regions) else 0}
                for (s, n), on, r in work
            ],
            "regions": [
                {
                    "name": f"r{i}",
                    "path": f"r{i}",
                    "start": s,
                    "end": s + n,
                    "instance": i + 1,
                    "thread": on,
                    "parent": i,
                }
                for i, ((s, n), on) in enumerate(regions)
            ],
            "synchronizations": [{"start": s, "end": s + n, "type": 3, "stream": 7} for s, n in syncs],
        }
    )
    data = written(result, tmp_path / "t.json")
    assert_rows_nest(data)
    assert sorted((ns(e["ts"]), ns(e["dur"])) for e in of(data, "kernel")) == sorted(t for t, _, _ in work)


@pytest.mark.parametrize("name", ["train-v100", "alexnet-a100", "triton-a100"])
def test_kernels_say_what_kinetos_say(name: str, tmp_path: Path) -> None:
    """Every argument of every kernel of the original file, estimated occupancy included."""
    with gzip.open(trace_path(name), "rt") as file:
        original = [e for e in json.load(file)["traceEvents"] if e.get("cat") == "kernel" and e["ph"] == "X"]
    data = written(cuptiprof.open(trace_path(name)), tmp_path / "t.json.gz")
    ours = {e["args"]["correlation"]: e for e in of(data, "kernel")}
    assert len(ours) == len(original) > 0
    for e in original:
        mine = ours[e["args"]["correlation"]]
        assert (mine["name"], mine["pid"], mine["tid"]) == (e["name"], e["pid"], e["tid"])
        for key, value in e["args"].items():
            if key == "External id" and name == "alexnet-a100":
                continue  # that version of torch wrote the correlation ID there
            got = mine["args"][key]
            if key.startswith("est.") and e["args"]["shared memory"] > 48 << 10:
                assert value == 0 and got > 0  # Kineto keeps to the 48 KiB default limit, the launch did not
                continue
            assert (
                (float(got) == pytest.approx(value, rel=1e-4, abs=1e-5)) if isinstance(value, float) else got == value
            ), key


def test_names_cannot_break_out(tmp_path: Path) -> None:
    name = HOSTILE + '"}]}\\ud800\ud800\n'
    region = {"name": name, "path": name, "start": 0, "end": 9, "instance": 1, "metadata": '"],"x":['}
    result = make_result({"kernels": [{"name": name, "start": 1, "end": 2}], "regions": [region]}, {"device": "\ud800"})
    data = written(result, tmp_path / "t.json")
    assert of(data, "kernel")[0]["name"] == name and of(data, "user_annotation")[0]["args"]["metadata"] == '"],"x":['


def test_rank_is_where_hta_looks(tmp_path: Path) -> None:
    result = make_result({"kernels": [{"name": "k", "start": 0, "end": 1}]}, {"rank": 3})
    result.export(tmp_path / "t.json")
    assert re.findall(r'"rank":\s+(\d+)', (tmp_path / "t.json").read_text()) == ["3"]


def test_whole_graphs_damaged_parents_and_unknown_chips(tmp_path: Path) -> None:
    regions = [
        {"name": "a", "path": "a", "start": 0, "end": 9, "instance": 1, "parent": 2},
        {"name": "b", "path": "b", "start": 0, "end": 9, "instance": 2, "parent": 1},
        {"name": "c", "path": "c", "start": 0, "end": 9, "instance": 4_000_000_000, "parent": 4_000_000_000},
    ]
    data = written(
        make_result(
            {
                "kernels": [
                    {"name": "k", "start": 1, "end": 3, "region_instance": i} for i in (1, 2, 3, 4_000_000_000)
                ],
                "graph_launches": [{"start": 4, "end": 8, "graph_id": 5, "correlation_id": 9}],
                "regions": regions,
                "launch_configs": [config(cluster_x=2, cluster_y=1, cluster_z=1)],
                "devices": [{"device": 0, "name": "X", "compute_capability_major": 99, "num_multiprocessors": 1}],
            }
        ),
        tmp_path / "t.json",
    )
    assert_rows_nest(data)
    assert of(data, "cuda_graph")[0]["name"] == "CUDA graph 5"
    assert "occupancy" not in of(data, "kernel")[0]["args"] and of(data, "kernel")[0]["args"]["cluster"] == [2, 1, 1]


def test_same_data_same_bytes_and_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    training_step().export(tmp_path / "a.json", progress=lambda done, total: seen.append((done, total)))
    training_step().export(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert [d for d, _ in seen] == sorted(d for d, _ in seen) and seen[-1][0] == seen[-1][1] > 0
    assert json.loads((tmp_path / "a.json").read_text())["traceEvents"]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "t.json"
    target.write_text("old")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training_step().export(target, overwrite=True, progress=stop)
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["t.json"]
    with pytest.raises(ResultError, match="chrome"):
        training_step().export(tmp_path / "x.nope")


def test_an_empty_run(tmp_path: Path) -> None:
    data = written(Result({}), tmp_path / "t.json")
    assert not [e for e in data["traceEvents"] if e["ph"] == "X"]
