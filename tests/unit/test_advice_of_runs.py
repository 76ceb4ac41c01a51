"""Advice on any run: never more time than there is, in order; on recorded ones what an engineer would say; counters; odd names."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from conftest import DATA, trace_path
from hypothesis import given
from hypothesis import strategies as st
from metric_results import launch, values
from report_results import HOSTILE, config, make_result

import cuptiprof
from cuptiprof.analysis import thresholds
from cuptiprof.analysis.advice.advise import advise
from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.kernel_rules import rules
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError

NAMES = (
    "compute",
    "ampere_sgemm_128x64_nn",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
)
CALLS = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMalloc", "cuModuleLoad")
DEVICES = [
    {"device": i, "compute_capability_major": 8, "num_multiprocessors": 108, "global_memory_size": 1 << 30}
    for i in range(2)
]
TIME = st.integers(0, 2_000_000)
SPANS = st.tuples(TIME, st.integers(0, 300_000))
KERNELS = st.lists(
    st.tuples(SPANS, st.integers(0, 9), st.sampled_from(NAMES), st.integers(0, 1), st.integers(0, 2)), max_size=12
)
COPIES = st.lists(
    st.tuples(SPANS, st.integers(0, 9), st.integers(0, 1 << 20), st.integers(1, 2), st.integers(1, 2)), max_size=6
)
HOST = st.lists(st.tuples(SPANS, st.integers(0, 9), st.sampled_from(CALLS)), max_size=12)
STEPS = st.lists(st.integers(1, 1_000_000), max_size=8)


def spans(of: tuple[int, int], number: int) -> dict[str, int]:
    return {"start": of[0], "end": of[0] + of[1], "correlation_id": number}


@given(KERNELS, COPIES, HOST, STEPS)
def test_never_more_time_than_there_is(
    kernels: list[Any], copies: list[Any], calls: list[Any], steps: list[int]
) -> None:
    begins = [sum(steps[:i]) for i in range(len(steps))]
    within_limits(
        make_result(
            {
                "kernels": [{**spans(at, n), "name": name, "device": device, "config": shape, "operator": "aten::mm" if n % 2 else ""} for at, n, name, device, shape in kernels],
                "memcpys": [{**spans(at, n), "bytes": size, "copy_kind": kind, "src_kind": memory, "dst_kind": 3} for at, n, size, kind, memory in copies],
                "api_calls": [{**spans(at, n), "name": name, "thread": 70} for at, n, name in calls],
                "markers": [{"name": str(i), "category": "step", "start": at, "end": at + long} for i, (at, long) in enumerate(zip(begins, steps, strict=True))],
                "operators": [{"name": "enumerate(DataLoader)#x.__next__", "start": at, "end": at + 50_000, "instance": i + 1, "thread": 70} for i, at in enumerate(begins)],
                "launch_configs": [config((1, 1, 1), (33, 1, 1)), config(), config((1 << 20, 1, 1), (1024, 1, 1))],
                "devices": DEVICES,
            }
        )
    )  # fmt: skip


def within_limits(result: Result) -> None:
    found = advise(result)
    evidence = Evidence(result.timed())
    assert [finding.saves for finding in found.findings] == sorted(
        (finding.saves for finding in found.findings), reverse=True
    )
    for finding in found.findings:
        assert 0 <= finding.saves <= finding.time <= found.whole, finding
        assert 0 <= finding.place.share <= 1 and finding.text and finding.try_
        assert not finding.saves or evidence.share(finding.saves) >= thresholds.MATTERS.value
    rows = result.report("advise", limit=1000).rows
    assert [row["rank"] for row in rows] == list(range(1, len(found.findings) + 1))


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("train-v100", ["tensor_cores", "tensor_cores", "tail", "tail"]),  # FP32 on a V100, the GPU never without work
        ("alexnet-a100", ["outside", "allocation", "host_bound", "calls"]),  # starts cuDNN
        ("sampled-nccl", ["host_bound", "communication"]),
        ("event-sync-streams", ["host_bound", "tensor_cores"]),
        ("triton-a100", ["outside"]),
        ("counters-a100", []),
        ("ranks/rank0", ["synchronisation", "exposed_copies", "few_blocks", "few_blocks"]),
    ],
)
def test_recorded_runs(trace: str, expected: list[str]) -> None:
    result = cuptiprof.open(DATA / f"{trace}.json.gz" if "/" in trace else trace_path(trace))
    within_limits(result)
    assert [finding.rule for finding in advise(result).findings] == expected


def test_what_is_advised_for_a_recorded_run() -> None:
    first, second, *_ = cuptiprof.open(trace_path("train-v100")).advise().rows
    assert (first["operator"], second["operator"]) == ("aten::convolution_backward", "aten::cudnn_convolution")
    assert first["region"] == "ProfilerStep#*/## backward ##"  # all steps are one place
    assert first["saves_ns"] == first["time_ns"] * 7 // 8 and first["saves_pct"] == pytest.approx(37.31, abs=0.01)


def counted(*metrics: dict[str, float]) -> Result:
    """Launches of one kernel of 100 us each in 1 ms, with these counters."""
    n = len(metrics)
    kernels = [
        {"name": "gemm", "start": i * 100_000, "end": (i + 1) * 100_000, "correlation_id": i + 1, "module": "layer.1"}
        for i in range(10)
    ]
    rows = [row for i, by_name in enumerate(metrics) for row in values(i + 1, **by_name)]
    return make_result(
        {"kernels": kernels, "metric_ranges": [launch(i + 1, i + 1, "gemm", grid_x=108 * 64, grid_y=1, block_x=1024) for i in range(n)], "metrics": rows, "devices": DEVICES[:1],
         "launch_configs": [config((108 * 64, 1, 1), (1024, 1, 1))]}
    )  # fmt: skip


def test_counters_say_more() -> None:
    low = {rules.COMPUTE: 30.0, rules.MEMORY: 50.0}
    (bound,) = advise(counted(low)).findings
    # Where no speed-up is estimated: up to the peak of what is used most.
    assert bound.rule == "SOLBottleneck" and (bound.saves, bound.time) == (500_000, 1_000_000)
    assert "latency" in bound.text and (bound.place.kernel, bound.place.module) == ("gemm", "layer.1")
    assert "--analysis-metrics" not in str(counted(low).advise())  # nothing that counters would add
    assert "--analysis-metrics" in advise(counted({})).notes[-1]
    assert advise(counted({rules.COMPUTE: 85.0, rules.MEMORY: 50.0})).findings == []
    # Means over the launches that were counted; a speed-up counts for all launches of the shape.
    diverging = advise(counted({rules.THREADS: 12.0}, {rules.THREADS: 20.0})).findings
    assert [(finding.rule, finding.saves) for finding in diverging] == [("ThreadDivergence", 500_000)]
    assert advise(counted({rules.THREADS: 20.0}, {rules.THREADS: 28.0})).findings == []
    # Shares are of the time in which the GPU worked, and nothing is said of when: it ran to be counted.
    slow = counted(low)
    slow = Result(
        {
            **slow.tables,
            "regions": make_result(
                {"regions": [{"name": "r", "path": "r", "start": 0, "end": 10**10, "instance": 1}]}
            ).regions,
        }
    )
    (row,) = slow.advise().rows
    assert row["saves_pct"] == 50 and "Of busy" in str(slow.advise()) and "to be counted" in str(slow.advise())
    assert [finding.rule for finding in advise(slow).findings] == ["SOLBottleneck"]
    # Of stalls the one that costs most, not all of them.
    stalls = {
        rules.ISSUE_ACTIVE: 0.7,
        rules.LATENCY: 10.0,
        "wait".join(rules.STALL): 4.0,
        "barrier".join(rules.STALL): 5.0,
    }
    (stalled,) = advise(counted(stalls)).findings
    assert stalled.saves == 500_000 and "barrier" in stalled.text


def hostile(name: str) -> Result:
    shape = {"launch_configs": [config((1, 1, 1), (33, 1, 1))], "devices": DEVICES[:1]}
    kernels = [{"name": name, "start": 0, "end": 1000, "operator": name, "region": name, "module": name, "line": name},
               {"name": "other", "start": 500_000, "end": 1_000_000, "correlation_id": 2, "region": name}]  # fmt: skip
    calls = [
        {"name": name, "start": 1000, "end": 450_000, "thread": 1},
        {"name": "cudaLaunchKernel", "start": 490_000, "end": 500_000, "correlation_id": 2, "thread": 1},
    ]
    return make_result({"kernels": kernels, "api_calls": calls, **shape})


@pytest.mark.parametrize("name", [HOSTILE, "x" * 65_536, "=1+1", "a\\/b//", "\x00\x1b]0;t\x07", "\u202e"])
def test_hostile_names(name: str) -> None:
    result = hostile(name)
    within_limits(result)
    report = result.advise()
    assert report.rows
    for format in ("text", "rich", "markdown"):
        shown = report.to(format, width=100) if format == "rich" else report.to(format)
        assert not set(shown) & {"\x00", "\x07", "\u202e"} and ("\x1b]" not in shown)
    assert max(map(len, report.content.footers)) < 1000  # names in sentences are cut
    assert len(report.to("rich", width=100)) < 5000
    assert json.loads(report.to("json"))["rows"][0]["text"]
    cells = [
        cell
        for row in csv.reader(line for line in io.StringIO(report.to("csv")) if not line.startswith("#"))
        for cell in row
    ]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    trace = str(trace_path("train-v100"))
    assert main(["advise", trace, "--limit", "1"]) == 0
    out = capsys.readouterr().out
    assert "Tensor cores not used" in out and "... and 3 more findings" in out and "\n2. " not in out
    assert main(["advise", trace, "--limit", "0"]) == 0
    out = capsys.readouterr().out
    assert "... and 4 more findings" in out and "Nothing stands out" not in out
    assert main(["advise", trace, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["view"] == "advise" and found["findings"] == 4 and len(found["rows"]) == 4
    assert main(["advise", str(tmp_path / "nothing.json")]) == 1
    assert "nothing.json" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["advise", trace, "--view", "gpu"])
    assert stopped.value.code == 2
    assert str(cuptiprof.open(trace).advise(limit=1)) == str(cuptiprof.open(trace).report("advise", limit=1))
    with pytest.raises(ResultError, match="of one rank"):
        cuptiprof.open(trace).report("advise", ranks=[cuptiprof.open(trace)])


def test_every_threshold_says_where_it_is_from() -> None:
    for name, threshold in thresholds.all_thresholds().items():
        assert threshold.what and threshold.source and threshold.value > 0, name
