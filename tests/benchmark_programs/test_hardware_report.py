"""docs/hardware.md: what counts as verified, and that the committed page is what the results make it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from made_up_results import H100, answer, overhead_row, put, result, row_of, verify_rows

from benchmarks.hardware_report.__main__ import PAGE, generate
from benchmarks.hardware_report.page import NOT_YET


def test_the_committed_page_is_what_the_results_make_it() -> None:
    assert PAGE.read_text(encoding="utf-8") == generate(), "run: python -m benchmarks.hardware_report"
    command = [sys.executable, "-m", "benchmarks.hardware_report", "--check"]
    assert subprocess.run(command, cwd=PAGE.parents[1], timeout=60).returncode == 0


def test_without_results_nothing_is_verified(tmp_path: Path) -> None:
    page = generate(tmp_path)
    rows = [line for line in page.splitlines() if line.startswith("|") and line.endswith(f"{NOT_YET} |")]
    assert len(rows) > 100 and "verified on GH100" not in page
    assert f"Nothing yet: everything below is **{NOT_YET}**" in page


def test_verified_failed_and_missing(tmp_path: Path) -> None:
    report = result(
        "hardware",
        verify=verify_rows(fma_f32="right", copies="wrong", peer_copies="skipped"),
        probes=[
            answer("activity_kinds", answer={"checks": {"kernel": True, "overhead": "no record came", "memcpy": "Lost: 3"}}),
            answer("two_threads", answer={"counted": 200, "threads": 2}),
            answer("buffer_size_against_stalls", answer={"summary": "64 KiB: 2 us", "64 KiB": {}}),
            answer("beside_ranges", error="crashed: signal 11"),
            answer("proton_beside", answer={"not applicable": "No module named 'triton'"}),
        ],
        soak={"simulated": False, "complete": True, "launches_made": 10**7, "unexplained": 0, "ns_per_launch": 2100.5},
        parts=[{"part": "tests", "ok": True, "tail": ["52 passed in 61.00s"]}],
        cupti_versions={"device": "cuda", "releases": {"12.6": {"right": True}, "13.4": {"right": False, "records": {"error": "no"}}}},
    )  # fmt: skip
    put(tmp_path, "hardware/GH100-580.65.06-130001/report.json", report)
    page = generate(tmp_path)
    assert "- GH100, driver 580.65.06, CUPTI 130001" in page
    assert row_of(page, "fma-f32") == "verified: 1 right"
    assert row_of(page, "copies") == "**failed**: 1 of 1 not right; flop\\_count\\_sp: expected 1024, measured 1000"
    assert row_of(page, "peer-copies") == f"{NOT_YET}: it needs two GPUs"
    assert row_of(page, "fma-f64") == NOT_YET
    assert row_of(page, "kernel ") == "verified" and row_of(page, "memcpy") == "**failed**: Lost: 3"
    assert row_of(page, "overhead") == f"{NOT_YET}: no record came"
    assert row_of(page, "`two_threads`") == "{counted: 200, threads: 2}"
    assert row_of(page, "`buffer_size_against_stalls`") == "64 KiB: 2 us"
    assert row_of(page, "`beside_ranges`") == "**failed**: crashed: signal 11"
    assert row_of(page, "`proton_beside`") == f"{NOT_YET}: No module named 'triton'"
    assert row_of(page, "10,000,000 launches").startswith("verified: 10,000,000 launches, 0 unaccounted for")
    assert row_of(page, "the tests of") == "verified: 52 passed in 61.00s"
    assert row_of(page, "12.6") == "verified" and row_of(page, "13.4").startswith("**failed**")
    assert "7 are verified or answered, 4 failed" in page


def test_what_lost_launches_or_ran_out_of_time_is_not_verified(tmp_path: Path) -> None:
    soak = {"complete": True, "launches_made": 10**7, "unexplained": 1, "ns_per_launch": 2000}
    put(tmp_path, "soak.json", result("soak", **soak))
    assert row_of(generate(tmp_path), "10,000,000").startswith("**failed**")
    put(tmp_path, "soak.json", result("soak", **{**soak, "unexplained": 0, "complete": False}))
    assert row_of(generate(tmp_path), "10,000,000").startswith(f"{NOT_YET}: time ran out")


@pytest.mark.parametrize(
    "changed",
    [
        {"simulated": True},
        {"simulated": None},
        {"simulated": 0},
        {"device": "sim"},
        {"machine": {**H100, "chip": ""}},
        {"machine": {**H100, "driver": None}},
        {"machine": {**H100, "cupti_version": True}},
        {"machine": [H100]},
    ],
    ids=str,
)
def test_simulated_and_nameless_results_verify_nothing(tmp_path: Path, changed: dict[str, object]) -> None:
    report = result("hardware", verify=verify_rows(fma_f32="right"))
    put(tmp_path, "report.json", report)
    assert row_of(generate(tmp_path), "fma-f32") == "verified: 1 right"
    put(tmp_path, "report.json", {**report, **changed})
    assert generate(tmp_path) == generate(tmp_path / "empty")


def test_a_simulated_part_of_a_hardware_report_verifies_nothing(tmp_path: Path) -> None:
    rows = {**verify_rows(fma_f32="right"), "metadata": {"simulated": True}}
    simulated = {"simulated": True, "complete": True, "launches_made": 5, "unexplained": 0}
    asked = {**answer("two_threads", answer={"counted": 1}), "simulated": True}
    report = result("hardware", verify=rows, soak=simulated, probes=[asked], cupti_versions={"device": "none", "releases": {"12.6": {"right": True}}})  # fmt: skip
    put(tmp_path, "report.json", report)
    assert generate(tmp_path) == generate(tmp_path / "empty")


def test_two_machines_are_named_in_each_row(tmp_path: Path) -> None:
    put(tmp_path, "a/report.json", result("hardware", verify=verify_rows(fma_f32="right")))
    other = {"chip": "AD104", "driver": "575.10", "cupti_version": 28}
    put(tmp_path, "b/report.json", result("hardware", machine=other, verify=verify_rows(fma_f32="failed")))
    said = row_of(generate(tmp_path), "fma-f32")
    assert "verified on GH100, driver 580.65.06, CUPTI 130001: 1 right<br>**failed** on AD104" in said


def test_overhead_against_floor_and_peers_and_what_stays(tmp_path: Path) -> None:
    def finding(workload: str, median: float) -> dict[str, object]:
        ratio = {"ratio": median, "low": median - 0.01, "high": median + 0.01}
        return {"workload": workload, "question": "kernels over the bare collector (bar 1.10)", "ratio": ratio}

    def residue(middle: float, high: float | None, verdict: str, p: float = 1e-4) -> dict[str, object]:
        return {"ratio": middle, "low": 0.98 * middle, "high": high, "verdict": verdict, "p_value": p}

    rows = [
        overhead_row("inference", "kernels", "ours", 100.0, residue=residue(1.0, 1.02, "UNSURE")),
        overhead_row("inference", "torch.profiler", "peer", 200.0, residue=residue(1.2, 1.3, "SLOWER")),
        overhead_row("training", "kernels", "ours", 100.0, residue=residue(1.2, 1.3, "SLOWER")),
        overhead_row("launch_loop", "kernels", "ours", 100.0, residue=residue(1.0, 1.2, "UNSURE")),
        overhead_row("graph_replay", "kernels", "ours", 100.0, residue=residue(1.0, None, "UNSURE")),
        # One of two that differs at 3 % is chance.
        overhead_row("triton", "kernels", "ours", 100.0, residue=residue(1.2, 1.3, "SLOWER", 0.03)),
        overhead_row("triton", "armed", "ours", 100.0, residue=residue(1.0, 1.01, "SAME")),
        overhead_row("training", "torch.profiler", "peer", 90.0),
        {"workload": "training", "condition": "Proton", "group": "peer", "available": False, "reason": "no triton"},
    ]
    data = result("overhead", rows=rows, findings=[finding("inference", 1.05), finding("training", 1.11)])
    put(tmp_path, "overhead.json", data)
    page = generate(tmp_path)
    assert row_of(page, "inference (many") == "verified: 1.050 (1.04 to 1.06)"
    assert row_of(page, "training (a") == "**failed**: 1.110 (1.1 to 1.12)"
    assert row_of(page, "inference: kernels only") == "verified: 0.500 of torch.profiler"
    assert row_of(page, "training: kernels only") == "**failed**: 1.111 of torch.profiler"
    assert row_of(page, "inference: step time") == "verified: none after 1 kinds of session"
    assert row_of(page, "training: step time") == "**failed**: after kernels"
    for unknown in ("launch_loop: step time", "graph_replay: step time", "triton: step time"):
        assert row_of(page, unknown) == f"{NOT_YET}: too noisy to exclude 5 % after kernels"
    assert row_of(page, "launch_loop_8_threads: step time") == NOT_YET


def test_the_harness_beside_its_peers(tmp_path: Path) -> None:
    def measured(function: str, peer: str, ns: float) -> dict[str, object]:
        return {"function": function, "peer": peer, "median_ns": ns, "range_percent": 0.5, "medians_ns": [ns] * 3}

    rows = [
        measured("add 2^18", "cuptiprof (kernel)", 2000.0),
        measured("add 2^18", "triton do_bench", 2500.0),
        {"function": "add 2^18", "peer": "flashinfer", "medians_ns": [], "error": "ImportError: none"},
        {"function": "attention", "peer": "cuptiprof (kernel)", "medians_ns": [], "error": "BenchError: lost"},
    ]
    put(tmp_path, "report.json", result("hardware", harness={"device": "cuda", "rows": rows}))
    page = generate(tmp_path)
    said = "largest less smallest of 3: 0.5 % cuptiprof (kernel), 0.5 % triton do\\_bench"
    assert row_of(page, "add 2^18: spread") == said
    assert row_of(page, "add 2^18: kernel time") == "2 us; 0.800 of triton do\\_bench"
    assert row_of(page, "attention: kernel time") == "**failed**: BenchError: lost"
    assert row_of(page, "mm 2048 bfloat16: spread") == NOT_YET
    put(tmp_path, "report.json", result("hardware", harness={"device": "host", "rows": rows}))
    assert row_of(generate(tmp_path), "add 2^18: spread") == NOT_YET  # the host's times say nothing of a GPU


def test_agreement_part_by_part(tmp_path: Path) -> None:
    def compared(part: str, theirs: float) -> dict[str, object]:
        return {"part": part, "kernel": "k", "what": "dram", "ours": 1.0, "theirs": theirs, "agrees": theirs == 1.0}

    rows = [compared("ncu, probes", 1.0), compared("ncu, probes", 2.0), compared("torch.profiler", 1.0)]
    put(tmp_path, "agreement.json", result("agreement", rows=rows, missing={"ncu, step": "ncu is not installed"}))
    page = generate(tmp_path)
    assert row_of(page, "the probes of `verify`") == "**failed**: 1 of 2 agree; k, dram: ours 1, theirs 2"
    assert row_of(page, "a PyTorch step") == "verified: 1 of 1 agree"
    assert row_of(page, "the same step under ncu") == f"{NOT_YET}: ncu is not installed"
