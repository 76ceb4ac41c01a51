"""The Perfetto trace, read by a decoder of its own (perfetto_trace.py).

tests/perfetto asks Perfetto's trace processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import trace_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfetto_trace import Trace, fields
from report_results import HOSTILE, make_result, training_step

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.export.chrome.clock import WEEK


def test_a_step(tmp_path: Path) -> None:
    trace = Trace(training_step(), tmp_path)
    assert trace.base == 10**18 // WEEK * WEEK
    at = 10**18 % WEEK
    kernel = next(s for s in trace.of("kernel") if s["args"]["correlation"] == 3)
    assert kernel["name"] == "gemm(float*, float*, int)" and trace.track_name(kernel["track"]) == "stream 7"
    assert (kernel["start"], kernel["end"]) == (at + 13_000, at + 25_345)
    assert kernel["args"]["grid"] == "4,106,1" and kernel["args"]["shared memory"] == 2064
    assert kernel["args"]["region"] == "step/fwd"
    depths = {s["name"]: s["depth"] for s in trace.of("user_annotation")}
    assert depths["fwd"] == depths["step"] + 1
    (copy,) = trace.of("gpu_memcpy")
    assert copy["args"]["memory bandwidth (GB/s)"] == 4.096 and copy["args"]["bytes"] == 4096
    call = next(s for s in trace.slices if s["name"] == "cudaMalloc")
    assert call["args"]["return value"] == 2 and not call["flows"]
    gpu = trace.tracks[trace.tracks[kernel["track"]][5][0]]
    assert gpu[2] == [b"GPU 0 (simulated)"]
    thread = dict(fields(trace.tracks[call["track"]][4][0]))
    assert thread[1] == 9 and thread[2] == 70


def test_arrows(tmp_path: Path) -> None:
    """A call begins an arrow, and the last of its work ends it."""
    calls = [
        {"start": 1, "end": 3, "name": "cudaGraphLaunch", "correlation_id": 5, "thread": 70, "process": 9},
        {"start": 4, "end": 5, "name": "cudaDeviceSynchronize", "correlation_id": 6, "thread": 70, "process": 9},
    ]
    kernels = [
        {"name": f"k{i}", "start": 10 * i, "end": 10 * i + 5, "stream": i, "correlation_id": 5} for i in (3, 1, 2)
    ]
    operators = [
        {"name": "aten::mul", "start": 1, "end": 2, "thread": 70, "instance": 1, "sequence": 8},
        {"name": "MulBackward0", "start": 50, "end": 60, "thread": 71, "instance": 2, "scope": 1, "sequence": 8, "forward": 1},
        {"name": "AccumulateGrad", "start": 70, "end": 80, "thread": 71, "instance": 3, "scope": 1, "forward": 1},
    ]  # fmt: skip
    result = make_result({"api_calls": calls, "kernels": kernels, "operators": operators}, {"pid": 9})
    trace = Trace(result, tmp_path)
    begun = {s["name"]: s["flows"] for s in trace.slices if s["flows"]}
    ended = {s["name"]: s["last"] for s in trace.slices if s["last"]}
    assert (
        begun["cudaGraphLaunch"] == begun["k1"] == begun["k2"] == ended["k3"] and "cudaDeviceSynchronize" not in begun
    )
    assert begun["aten::mul"] == begun["MulBackward0"] == ended["AccumulateGrad"] != ended["k3"]
    assert set(ended) == {"k3", "AccumulateGrad"}


times = st.tuples(st.integers(1, 60), st.integers(0, 30))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    work=st.lists(st.tuples(times, st.sampled_from([7, 8])), max_size=12),
    regions=st.lists(st.tuples(times, st.sampled_from([70, 71])), max_size=8),
)
def test_every_slice_is_there_with_its_times(work: Any, regions: Any, tmp_path: Path) -> None:
    result = make_result(
        {
            "kernels": [{"name": "k", "start": s, "end": s + n, "stream": on} for (s, n), on in work],
            "regions": [
                {"name": f"r{i}", "start": s, "end": s + n, "instance": i + 1, "thread": on}
                for i, ((s, n), on) in enumerate(regions)
            ],
        },
        {"pid": 9},
    )
    trace = Trace(result, tmp_path)
    for category, given_ in (("kernel", work), ("user_annotation", regions)):
        found = sorted((s["start"], s["end"]) for s in trace.of(category))
        assert [e - s for s, e in found] == [
            n for (_, n), _ in sorted(given_, key=lambda one: (one[0][0], sum(one[0])))
        ]


@pytest.mark.parametrize("name", ["train-v100", "alexnet-a100", "counters-a100", "sampled-nccl", "event-sync-streams"])
def test_the_counts_of_a_real_trace(name: str, tmp_path: Path) -> None:
    result = cuptiprof.open(trace_path(name))
    trace = Trace(result, tmp_path)
    for table, categories in (
        ("kernels", ["kernel"]), ("memcpys", ["gpu_memcpy"]), ("memsets", ["gpu_memset"]),
        ("api_calls", ["cuda_runtime", "cuda_driver"]), ("operators", ["cpu_op"]), ("synchronizations", ["cuda_sync"]),
        ("overhead", ["overhead"]), ("regions", ["user_annotation"]),
    ):  # fmt: skip
        assert sum(len(trace.of(c)) for c in categories) == len(result.tables[table]), table
    assert sum(s["end"] - s["start"] for s in trace.of("kernel")) == result.kernels["duration"].sum()


def test_names_are_only_names(tmp_path: Path) -> None:
    name = HOSTILE + "\ud800\0" + "x" * 65536
    region = {"name": name, "path": name, "start": 0, "end": 9, "instance": 1}
    result = make_result({"kernels": [{"name": name, "start": 1, "end": 2}], "regions": [region]})
    trace = Trace(result, tmp_path)
    shown = name.encode("utf-8", "backslashreplace").decode()
    assert trace.of("kernel")[0]["name"] == trace.of("user_annotation")[0]["args"]["path"] == shown


def test_an_empty_run_and_ten_thousand_names(tmp_path: Path) -> None:
    assert not Trace(Result({}), tmp_path).slices
    kernels = [{"name": f"k{i}", "start": i * 10, "end": i * 10 + 5} for i in range(10_000)]
    trace = Trace(make_result({"kernels": kernels}), tmp_path)
    assert [s["name"] for s in trace.of("kernel")] == [f"k{i}" for i in range(10_000)]
