"""What the benchmarks share: cases in turn by the harness, and their numbers as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from own_time import takes_less_than

from benchmarks import common, harness_cost, regions
from benchmarks.decode.__main__ import measure
from benchmarks.hardware_report.capabilities import sections
from benchmarks.harness_peers import GPU_FUNCTIONS, summary
from benchmarks.rounds import Budget, Row, rounds_of
from cuptiprof.stats.verdict import Kind


def taking(ns: float, **more: float) -> Callable[[], Row]:
    """A case that took so long, a little more each time, with other numbers."""
    calls: list[int] = []

    def run() -> Row:
        calls.append(1)
        return {"ns": ns * (1 + 0.001 * (len(calls) % 7)), **more}

    return run


def test_cases_are_measured_in_turn_and_any_two_are_compared() -> None:
    found = common.in_turn({"base": taking(100.0), "slow": taking(150.0), "fast": taking(50.0)}, 24)
    assert [len(m.samples) for m in found.measurements] == [24] * 3
    slow = common.ratio(found.verdict("slow", "base"))
    assert slow["verdict"] == "SLOWER" and slow["low"] <= slow["ratio"] <= slow["high"]
    assert slow["ratio"] == pytest.approx(1.5, rel=0.01)
    assert common.ratio(found.verdict("fast", "slow"))["ratio"] == pytest.approx(1 / 3, rel=0.01)


def test_few_rounds_have_no_interval_and_no_verdict() -> None:
    found = common.in_turn({"base": taking(100.0), "slow": taking(150.0)}, 10)
    value = common.ratio(found.verdicts["slow"])
    assert value["low"] is None and value["high"] is None and value["verdict"] == "UNSURE"
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_a_summary_is_in_its_unit_and_counts_stay_exact() -> None:
    s = common.summary([2e6, 1e6, 3e6], 1e6)
    assert s == {"median": 2, "low": 1, "high": 3, "confidence": 0.75, "samples": [2, 1, 3]}
    assert common.summary([25_698_640, 25_698_640])["median"] == 25_698_640
    assert common.significant(0.123456789) == 0.12346


def test_results_keep_series_on_a_line_and_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = {"name": "[1,\n 2]", "samples": [1.5, -2e-9, 3], "rows": [{"a": [1]}], "none": []}
    common.finish(data, tmp_path / "new" / "out.json")
    text = (tmp_path / "new" / "out.json").read_text()
    assert {k: v for k, v in json.loads(text).items() if k != "machine"} == data
    assert '"samples": [ 1.5, -2e-09, 3 ]' in text and capsys.readouterr().out == text


def test_every_number_of_a_case_and_the_ratio_of_one() -> None:
    def case(ms: float, **more: float) -> Callable[[], Row]:
        timed = taking(ms)
        return lambda: {"step_ms": timed()["ns"], **more}

    found = rounds_of({"tracing": case(2.0), "sampled": case(3.0, samples=7)}, Budget(24, 60.0, 1), "tracing", "step_ms", 1e6)  # fmt: skip
    assert found["sampled"]["samples"] == 7  # the same in each round
    assert found["sampled"]["step_ms"]["median"] == pytest.approx(3.0, rel=0.01)
    assert found["sampled"]["step_ms to tracing"]["ratio"] == pytest.approx(1.5, rel=0.01)
    assert "step_ms to tracing" not in found["tracing"]


def test_questions_share_the_time_that_is_left() -> None:
    budget = Budget(100, 1.0, 2)
    assert 0.4 < budget.share() <= 0.5
    assert 0.8 < budget.share() <= 1.0  # the first took none of its own

    def slow() -> Row:
        time.sleep(0.1)
        return {"step_ms": 100.0}

    with takes_less_than(3):
        found = rounds_of({"tracing": slow, "other": slow}, Budget(100, 0.5, 1), "tracing", "step_ms", 1e6)
    assert found["other"]["step_ms"] == 100


def test_an_empty_loop_is_subtracted() -> None:
    def sleeps(n: int) -> None:
        time.sleep(1e-5 * n)

    assert 9_000 < regions.net(sleeps, 1000) < 100_000
    assert abs(regions.net(regions.empty, 4000)) < 100


def test_decode_is_set_against_bare_iteration() -> None:
    bare, decoded = taking(8.0), taking(24.0, rows=990, bytes=48_000)

    class Program:
        def measure(self, what: str, records: int) -> Row:
            assert records == 1000
            return bare() if what == "bare" else decoded()

    found = measure(Program(), 1000, 24, 60)  # type: ignore[arg-type]
    assert found["records"] == 990 and found["bytes_per_record"] == 48.485
    assert found["decode to bare (bar 4)"]["ratio"] == pytest.approx(3.0, rel=0.01)
    assert found["decode to bare (bar 4)"]["verdict"] == Kind.SLOWER.value


def test_the_spread_of_repeated_medians() -> None:
    s = summary([100.0, 101.0, 102.0, 99.0, 98.0], [0.1, 0.2, 0.3, 0.2, 0.2])
    assert s["median_ns"] == 100 and s["range_percent"] == 4 and s["seconds_to_result"] == 0.2
    assert (s["low_ns"], s["high_ns"], s["confidence"]) == (98, 102, 0.9375)
    assert summary([], []) == {}


def test_the_page_has_a_row_for_each_function_of_the_peers() -> None:
    keys = {c.key for s in sections() for c in s.rows}
    assert {f"harness:{q}:{f}" for f in GPU_FUNCTIONS for q in ("spread", "agreement")} <= keys


def test_the_harness_adds_less_to_an_empty_function_than_the_function_takes() -> None:
    """Loose, for a busy machine: the benchmark has the numbers."""
    assert harness_cost.bare_batches() < 500
    device_blocks = harness_cost.blocks(12)
    assert 0 < device_blocks["each further sample"]["median"] < device_blocks["session of two samples"]["median"]
    assert device_blocks["stamp of the SM clock, in that"]["median"] < device_blocks["each further sample"]["median"]
