"""Implementations against each other over the points of a sweep."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import cuptiprof
from cuptiprof.bench import Case, Count, run_benchmarks, skip
from cuptiprof.bench.plots.over_parameter import lines_over
from cuptiprof.bench.results.store import Results, ResultsWriter, read_results
from cuptiprof.bench.sweep.resume import plan
from cuptiprof.bench.sweep.running import tasks_of
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import BenchError

TWICE, SAME = 2, 1


@pytest.fixture
def machine() -> SimulatedDevice:
    return SimulatedDevice(virtual_clock=True)


def made(machine: SimulatedDevice, order: list[str] | None = None, **options: Any) -> Any:
    @cuptiprof.benchmark(
        params={"n": [10, 20], "impl": ["eager", "fast", "same"]}, compare="impl", stop=Count(24), **options
    )
    def softmax(n: int, impl: str) -> Any:
        def call() -> None:
            if order is not None:
                order.append(impl)
            machine.sim.launch(impl, duration_ns=1_000 * n // (2 if impl == "fast" else 1))

        return call

    return softmax


def rows_of(results: Results) -> list[dict[str, str]]:
    text = results.report().to("csv")
    return list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))


def test_each_value_is_judged_against_the_first_at_each_point(machine: SimulatedDevice) -> None:
    results = run_benchmarks(made(machine), device=machine)
    assert [(r.params["n"], r.params["impl"]) for r in results.rows] == [
        (n, i) for n in (10, 20) for i in ("eager", "fast", "same")
    ]
    assert all(r.compare == "impl" and r.measurement is not None for r in results.rows)
    said = [(row["verdict"], row["ratio"]) for row in rows_of(results)]
    assert [v for v, _ in said] == ["", "FASTER", "SAME"] * 2 and float(said[1][1]) == pytest.approx(0.5)
    text = results.report().to("text")
    assert "fast against eager: speed-up x2.000 (geometric mean of 2 points: 2 FASTER)" in text
    assert "same against eager: speed-up x1.000 (geometric mean of 2 points: 2 SAME)" in text and "x2.000" in text


def test_they_are_measured_in_turn(machine: SimulatedDevice) -> None:
    order: list[str] = []
    run_benchmarks(made(machine, order), device=machine)
    last = order[-60:]
    assert {last.count(i) for i in ("eager", "fast", "same")} == {20}, "samples of a point alternate to its end"


def test_the_compared_parameter_need_not_be_the_last(machine: SimulatedDevice) -> None:
    @cuptiprof.benchmark(params={"impl": ["a", "b"], "n": [1, 2]}, compare="impl", stop=Count(12))
    def f(n: int, impl: str) -> Any:
        return lambda: machine.sim.launch("k", duration_ns=1_000 * n)

    results = run_benchmarks(f, device=machine)
    assert [(r.params["n"], r.params["impl"]) for r in results.rows] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    assert [row["verdict"] for row in rows_of(results)] == ["", "SAME", "", "SAME"]


def test_verdicts_come_back_from_a_file_and_lines_are_drawn(machine: SimulatedDevice, tmp_path: Path) -> None:
    results = run_benchmarks(made(machine), device=machine)
    with ResultsWriter(tmp_path / "r.jsonl", results.environment) as writer:
        for row in results.rows:
            writer.add(row)
    again = read_results(tmp_path / "r.jsonl")
    assert (
        rows_of(again) == rows_of(results)
        and json.loads((tmp_path / "r.jsonl").read_text().splitlines()[1])["compare"] == "impl"
    )
    assert list(lines_over(again.rows, "n")) == ["softmax impl=eager", "softmax impl=fast", "softmax impl=same"]


def test_one_that_fails_leaves_the_others_their_times(machine: SimulatedDevice) -> None:
    @cuptiprof.benchmark(params={"impl": ["a", "broken", "left out"]}, compare="impl", stop=Count(12))
    def f(impl: str) -> Any:
        if impl == "left out":
            skip("needs float8")
        if impl == "broken":
            raise ValueError("no kernel")
        return lambda: machine.sim.launch("k", duration_ns=1_000)

    a, broken, left_out = run_benchmarks(f, device=machine).rows
    assert a.measurement is not None and broken.failure is not None and "no kernel" in str(broken.failure)
    assert left_out.failure is not None and not left_out.failed


def test_a_sweep_that_goes_on_measures_a_whole_point_again(machine: SimulatedDevice) -> None:
    benchmark = made(machine)
    results = run_benchmarks(benchmark, device=machine)
    cut = Results(results.rows[:4], results.environment)
    todo = plan(tasks_of([benchmark]), cut, results.environment)
    assert [r.params["n"] for r in todo.done] == [10, 10, 10] and [t.point.params["n"] for t in todo.left] == [
        20,
        20,
        20,
    ]
    assert not plan(tasks_of([benchmark]), results, results.environment).left


def test_functions_over_sizes_without_a_file(machine: SimulatedDevice) -> None:
    seen: list[Any] = []

    def old(x: int, y: str) -> int:
        seen.append((x, y))
        machine.sim.launch("k", duration_ns=1_000 * x)
        return x

    def new(x: int, y: str) -> int:
        machine.sim.launch("k", duration_ns=500 * x)
        return x

    results = cuptiprof.compare({"old": old, "new": new}, over={"n": [2, 4], "t": ["a"]}, inputs=lambda n, t: (n, t), check=True,
                                flops=lambda n: 1e6 * n, device=machine, stop=Count(12))  # fmt: skip
    assert set(seen) == {(2, "a"), (4, "a")}
    assert [row["verdict"] for row in rows_of(results)] == ["", "FASTER"] * 2
    assert [r.params for r in results.rows][1] == {"n": 2, "t": "a", "impl": "new"}
    roofs = [r.measurement.roofline for r in results.rows if r.measurement]
    assert [r.flops for r in roofs if r] == [2e6, 2e6, 4e6, 4e6]

    def maker(scale: int) -> Any:
        return lambda n: Case(lambda: machine.sim.launch("k", duration_ns=scale * n))

    prepared = cuptiprof.compare(
        {"a": maker(1_000), "b": maker(2_000)}, over={"n": [3]}, device=machine, stop=Count(12)
    )
    assert [row["verdict"] for row in rows_of(prepared)] == ["", "SLOWER"]
    wrong = cuptiprof.compare({"a": lambda x: x, "b": lambda x: x + 1}, over={"n": [1]}, inputs=lambda n: n, check=True,
                              device="host", max_seconds=0.02, warmup_seconds=0.01)  # fmt: skip
    assert [r.failed for r in wrong.rows] == [False, True]


def test_what_makes_no_sense_over_sizes() -> None:
    two: dict[str, Any] = {"a": lambda n: None, "b": lambda n: None}
    for keywords, words in (
        ({"over": {"impl": [1]}}, "cannot be called 'impl'"), ({"inputs": lambda: 1}, "over="), ({"over": {"n": [1]}, "threshold": 0.1}, "threshold"),
        ({"over": {"n": [1]}, "check": True}, "Case"), ({"over": {"n": []}}, "no values"),
    ):  # fmt: skip
        with pytest.raises(BenchError, match=words):
            cuptiprof.compare(two, device="host", **keywords)
    with pytest.raises(BenchError, match=r"compare='imp' .*did you mean impl"):
        cuptiprof.benchmark(params={"impl": ["a"]}, compare="imp")(lambda impl: None)
