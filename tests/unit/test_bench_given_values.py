"""Values of parameters from the command line, and points that leave themselves out."""

from __future__ import annotations

from typing import Any

import pytest
from bench_rows import fake_measure

from cuptiprof.bench import skip
from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.store import Results
from cuptiprof.bench.sweep.benchmark import Benchmark
from cuptiprof.bench.sweep.given_values import parse_values, with_values
from cuptiprof.bench.sweep.resume import plan
from cuptiprof.bench.sweep.running import run, tasks_of
from cuptiprof.errors import BenchError


def made(params: Any) -> Benchmark:
    return Benchmark(lambda **point: lambda: 1, params, "f", {})


def points(params: Any, *given: str) -> list[dict[str, Any]]:
    (b,) = with_values([made(params)], parse_values(given))
    return [dict(p.values) for p in b.points]


def test_values_are_of_the_kind_that_the_parameter_has() -> None:
    assert points({"n": [256, 512], "t": ["a", "b"]}, "n=2048") == [{"n": 2048, "t": "a"}, {"n": 2048, "t": "b"}]
    # The last parameter stays the fastest.
    assert points({"n": [256], "t": ["a", "b"]}, "n=1,2") == [{"n": n, "t": t} for n in (1, 2) for t in "ab"]
    assert points({"n": [256]}, "n=1,2") == [{"n": 1}, {"n": 2}]
    assert points({"x": [0.5, 1]}, "x=2") == [{"x": 2.0}] and points({"b": [True]}, "b=false,true") == [
        {"b": False},
        {"b": True},
    ]
    assert points({"t": ["a"], "n": [1, 2]}, "t=c", "n=2") == [{"t": "c", "n": 2}]
    assert points([{"n": 1, "k": 1}, {"n": 2, "k": 4}], "k=9") == [{"n": 1, "k": 9}, {"n": 2, "k": 9}]
    torch = pytest.importorskip("torch")
    for text in ("bfloat16", "torch.bfloat16"):
        assert points({"t": [torch.float16]}, f"t={text}") == [{"t": torch.bfloat16}]
    assert points({"t": [torch.float16, torch.float32]}, "t=float16") == [{"t": torch.float16}]


@pytest.mark.parametrize(
    "params,given,words",
    [
        ({"n": [1]}, ["m=1"], r"no parameter 'm'"), ({"tokens": [1]}, ["token=1"], r"did you mean tokens"), ({"n": [1]}, ["n=many"], r"not a number"),
        ({"n": [1]}, ["n"], r"not a parameter"), ({"n": [1]}, ["n="], r"not a parameter"), ({"n": [1]}, ["n=1", "n=2"], r"twice"),
        ({"n": [1]}, ["n=1,1"], r"1 twice"), ({"f": [len, max]}, ["f=mac"], r"no such value \(did you mean max\?\)"),
    ],
)  # fmt: skip
def test_slips_are_said(params: Any, given: list[str], words: str) -> None:
    with pytest.raises(BenchError, match=words):
        points(params, *given)


def test_a_point_may_leave_itself_out() -> None:
    def f(n: int) -> Any:
        if n > 1:
            skip("needs float8")
        return lambda: 1

    tasks = tasks_of([Benchmark(f, {"n": [1, 2]}, "f", {})])
    one, two = run(tasks, measure=fake_measure([]))
    assert one.measurement is not None and two.failure is not None
    assert str(two.failure) == "skipped: needs float8" and not two.failed
    stored = type(two).from_dict(two.to_dict())
    assert stored.failure == two.failure
    results = Results((one, two), {})
    assert [t.point.params for t in plan(tasks, results, {}).left] == [
        {"n": 1}
    ]  # of another chip; a sweep that goes on does not ask again
    (_, compared) = compare_results(results, results).points
    assert compared.verdict is None and "skipped" in compared.reason
