"""Benchmarks as they are declared, selected and run; a failing point is a row."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_rows import ENVIRONMENT, fake_measure, measurement

import cuptiprof
import cuptiprof.bench.sweep.failures
from cuptiprof.bench.results.points import make_points
from cuptiprof.bench.results.row import Failure, Row
from cuptiprof.bench.results.store import Results
from cuptiprof.bench.sweep.benchmark import Benchmark, Case
from cuptiprof.bench.sweep.discover import find_benchmarks
from cuptiprof.bench.sweep.failures import TimedOut, deadline
from cuptiprof.bench.sweep.resume import plan
from cuptiprof.bench.sweep.running import Task, run, tasks_of
from cuptiprof.bench.sweep.selection import parse, select
from cuptiprof.errors import BenchError


def make(function: Callable[..., Any], **options: Any) -> Benchmark:
    made = cuptiprof.benchmark(**options)(function)
    assert isinstance(made, Benchmark)
    return made


def measured(*benchmarks: Benchmark, **options: Any) -> tuple[list[Row], list[Mapping[str, Any]]]:
    calls: list[Mapping[str, Any]] = []
    return run(tasks_of(benchmarks), measure=fake_measure(calls), **options), calls


def test_the_product_has_the_last_parameter_fastest() -> None:
    points = make_points({"n": [1, 2], "t": ["a", None]})
    assert [p.params for p in points] == [
        {"n": 1, "t": "a"}, {"n": 1, "t": None}, {"n": 2, "t": "a"}, {"n": 2, "t": None},
    ]  # fmt: skip
    assert [str(p) for p in points][:2] == ["n=1 t=a", "n=1 t=None"]


def test_a_list_of_dicts_is_taken_as_it_is() -> None:
    assert [p.values for p in make_points([{"m": 1, "n": 8}, {"n": 4, "m": 2}])] == [{"m": 1, "n": 8}, {"n": 4, "m": 2}]


def test_values_that_look_alike_are_told_apart() -> None:
    assert len({p.key for p in make_points({"n": [1, 1.0, True, "1"]})}) == 4


def test_objects_are_named_and_given_as_they_are() -> None:
    (point,) = make_points({"f": [len]})
    assert point.params == {"f": "len"} and point.values["f"] is len


@pytest.mark.parametrize(
    "params,message",
    [
        ({"n": []}, "has no values"),
        ({"n": [1, 2, 1]}, "has 1 twice"),
        ({"n": 5}, "not a list of values"),
        ({"n": "abc"}, "not a list of values"),
        ({"n": [float("nan")]}, "cannot be told apart"),
        ({"n": [object()]}, "no name that lasts"),
        ({"n": ["x" * 1000]}, "1000 characters"),
        ({"a b": [1]}, "cannot be a parameter's name"),
        ({"a": range(1000), "b": range(1000)}, "1,000,000 points"),
        ([{"n": 1}, {"m": 1}], "do not have the same parameters: m, n"),
        ([{"n": 1}, {"n": 1}], "given before: n=1"),
        ([], "has no points"),
        ([3], "not a dict"),
        (7, "a dict of lists or a list of dicts"),
    ],
)
def test_parameters_that_clash(params: Any, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        make_points(params)


def test_clashes_with_the_function_are_said_at_decoration() -> None:
    with pytest.raises(BenchError, match=r"no parameter 'dtpye' \(did you mean dtype\?\)"):
        make(lambda dtype: None, params={"dtpye": [1]})
    with pytest.raises(BenchError, match="'m' has no values"):
        make(lambda n, m: None, params={"n": [1]})
    with pytest.raises(BenchError, match="positional-only"):
        make(lambda n, /: None, params={"n": [1]})
    with pytest.raises(BenchError, match=r"flops= of benchmark '<lambda>': parameter 'k' has no values"):
        make(lambda n: None, params={"n": [1]}, flops=lambda k: k)
    with pytest.raises(BenchError, match="goes on a function"):
        cuptiprof.benchmark({"n": [1]})

    async def later(n: int) -> None: ...

    with pytest.raises(BenchError, match="is async"):
        make(later, params={"n": [1]})


def test_defaults_and_any_name_are_taken() -> None:
    assert make(lambda n, m=3: None, params={"n": [1]}).parameters == ("n",)
    assert make(lambda **p: None, params={"n": [1], "m": [2]}).parameters == ("n", "m")


def test_it_can_still_be_called() -> None:
    assert make(lambda n: n + 1, params={"n": [1]})(5) == 6


def test_the_options_of_a_point_reach_the_measuring() -> None:
    b = make(
        lambda n, t: lambda: n,
        params={"n": [2, 3], "t": ["x"]},
        flops=lambda n: 10 * n,
        bytes=5,
        metrics=["ipc"],
        l2="cold",
        name="it",
    )
    rows, calls = measured(b, device="there")
    assert [(c["flops"], c["bytes"], c["metrics"], c["l2"], c["device"]) for c in calls] == [
        (20, 5, ("ipc",), "cold", "there"),
        (30, 5, ("ipc",), "cold", "there"),
    ]
    assert [c["params"] for c in calls] == [{"n": 2, "t": "x"}, {"n": 3, "t": "x"}]
    assert [r.measurement.median for r in rows if r.measurement] == [2.0, 3.0]
    assert rows[0].benchmark == "it" and rows[0].arguments == {"bytes": 5, "l2": "cold", "metrics": ["ipc"]}


def test_overrides_win() -> None:
    calls: list[Mapping[str, Any]] = []
    b = make(lambda: lambda: 1, strategy="event", max_seconds=9.0)
    rows = run(tasks_of([b], {"max_seconds": 1.0}), measure=fake_measure(calls))
    assert calls[0]["max_seconds"] == 1.0 and calls[0]["strategy"] == "event"
    assert rows[0].arguments == {"max_seconds": 1.0, "strategy": "event"}


def test_a_generator_cleans_up_after_its_point() -> None:
    log: list[str] = []

    def f(n: int) -> Iterator[Callable[[], object]]:
        log.append(f"prepare {n}")
        yield lambda: log.append(f"call {n}")
        log.append(f"clean {n}")

    rows, _ = measured(make(f, params={"n": [1, 2]}))
    assert log == ["prepare 1", "call 1", "clean 1", "prepare 2", "call 2", "clean 2"]
    assert all(r.measurement for r in rows)


def test_a_generator_cleans_up_when_measuring_fails() -> None:
    log: list[str] = []

    def f() -> Iterator[Callable[[], object]]:
        try:
            yield lambda: 1 / 0
        except ZeroDivisionError:
            log.append("seen")
        finally:
            log.append("clean")

    (row,), _ = measured(make(f))
    assert log == ["seen", "clean"]  # and swallowing it does not make the point a success
    assert row.failure is not None and row.failure.message == "ZeroDivisionError: division by zero"


def test_the_setup_of_a_case_is_passed_on() -> None:
    def reset() -> None: ...

    _, calls = measured(make(lambda: Case(lambda: 1, setup=reset)))
    assert calls[0]["setup"] is reset


def nothing() -> None: ...


def twice() -> Iterator[Callable[[], object]]:
    yield lambda: 1
    yield lambda: 2


def bad_clean_up() -> Iterator[Callable[[], object]]:
    yield lambda: 1
    raise OSError("left behind")


def leaves() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "function,message",
    [
        (nothing, "returned NoneType, not a function"),
        (twice, "yielded twice"),
        (bad_clean_up, "OSError: left behind"),
        (leaves, "SystemExit: 3"),
        (lambda: (_ for _ in ()), "yielded nothing"),
    ],
)
def test_a_point_that_fails_is_a_row_and_the_sweep_goes_on(function: Callable[..., Any], message: str) -> None:
    rows, _ = measured(make(function), make(lambda: lambda: 1, name="after"))
    assert rows[0].failure is not None and message in rows[0].failure.message and rows[0].measurement is None
    assert rows[1].measurement is not None


def test_the_place_of_an_error_is_that_of_the_benchmark() -> None:
    (row,), _ = measured(make(lambda: int("x")))
    line = test_the_place_of_an_error_is_that_of_the_benchmark.__code__.co_firstlineno + 1
    assert row.failure is not None and row.failure.where == f"test_bench_sweep.py:{line}"


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch's and CuPy's are."""


def test_out_of_memory_lets_go_of_the_point_before_the_next() -> None:
    class Tensor: ...

    alive: list[weakref.ref[Tensor]] = []
    held_at_next: list[bool] = []

    def big(n: int) -> Callable[[], object]:
        held_at_next.append(any(ref() is not None for ref in alive))
        x = Tensor()
        alive.append(weakref.ref(x))
        if n == 1:
            raise OutOfMemoryError("tried to allocate 80 GiB")
        return lambda: x and 1.0

    gc.disable()
    try:
        rows, _ = measured(make(big, params={"n": [1, 2]}))
    finally:
        gc.enable()
    assert rows[0].failure is not None and rows[0].failure.kind == "out of memory"
    assert rows[1].measurement is not None and held_at_next == [False, False]


def test_interruption_stops_the_sweep_and_keeps_what_was_told() -> None:
    def f(n: int) -> Callable[[], object]:
        if n == 3:
            raise KeyboardInterrupt
        return lambda: n

    told: list[str] = []

    class Watcher:
        def begins(self, title: str) -> None:
            told.append(f"begins {title}")

        def ended(self, row: Row) -> None:
            told.append(f"ended {row.title}")

        def hangs(self, row: Row) -> None:
            raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        run(tasks_of([make(f, params={"n": [1, 3, 4]}, name="f")]), Watcher(), measure=fake_measure([]))
    assert told == ["begins f n=1", "ended f n=1", "begins f n=3"]


def test_a_point_past_its_limit_is_a_row() -> None:
    def f(n: int) -> Callable[[], object]:
        def call() -> None:
            try:
                time.sleep(30 if n == 1 else 0)
            except Exception:  # a broad `except` of the benchmark's does not hide the limit
                raise AssertionError from None

        return call

    began = time.monotonic()
    rows, _ = measured(make(f, params={"n": [1, 2]}), timeout=0.2)
    assert time.monotonic() - began < 30  # as long as it would sleep
    assert rows[0].failure == Failure("timeout", "not over after 0.2 s", seconds=0.2)
    assert rows[1].measurement is not None


def test_what_does_not_come_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuptiprof.bench.sweep.failures.GRACE_SECONDS", 0.1)
    given_up: list[float] = []
    began = time.monotonic()
    with deadline(0.1, lambda: given_up.append(time.monotonic() - began)):
        while not given_up:  # takes the ring and stays, as a native call would
            try:
                time.sleep(0.3)
            except TimedOut:
                continue
    assert given_up[0] >= 0.2  # and the test ends


def test_a_point_in_time_leaves_no_alarm_behind() -> None:
    with deadline(0.05, lambda: None):
        pass
    time.sleep(0.1)  # a ring that was left would raise here


def point_names(expression: str, params: Any) -> list[str]:
    return [str(p) for p in select(make_points(params), parse(expression), lambda p: p.params)]


@pytest.mark.parametrize(
    "expression,expected",
    [
        ("n=2", ["n=2 t=a", "n=2 t=b"]),
        ("n==2,t=b", ["n=2 t=b"]),
        ("n >= 2 , n < 4 , t != a", ["n=2 t=b"]),
        ("n=1|4,t=a", ["n=1 t=a", "n=4 t=a"]),
        ("n!=1|2,t=a", ["n=4 t=a"]),
        ("n=4.0,t=a", ["n=4 t=a"]),
        ("t>=1,n=1", []),
    ],
)
def test_filters(expression: str, expected: list[str]) -> None:
    if not expected:
        with pytest.raises(BenchError, match="leaves no point"):
            point_names(expression, {"n": [1, 2, 4], "t": ["a", "b"]})
        return
    assert point_names(expression, {"n": [1, 2, 4], "t": ["a", "b"]}) == expected


def test_filters_know_true_false_and_none() -> None:
    assert point_names("c=true", {"c": [True, False, None, 1, "True"]}) == ["c=True"]
    assert point_names("c=none|false", {"c": [True, False, None]}) == ["c=False", "c=None"]


@pytest.mark.parametrize(
    "expression,message",
    [
        ("n", "no condition"),
        ("n=", "no condition"),
        ("n>x", "not a number"),
        ("", "no condition"),
        ("__import__('os').system('x')", "no condition"),
        ("dtpye=1", r"did you mean dtype\?"),
        ("dtype=flaot16", r"no point has dtype=flaot16 \(did you mean float16\?\)"),
    ],
)
def test_filters_that_are_wrong(expression: str, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        point_names(expression, {"dtype": ["float16", "float32"], "n": [1]})


FILE = """
import cuptiprof
import beside
from dataclasses import dataclass

@dataclass
class Shape: n: int

@cuptiprof.benchmark(params={"n": [1, 2]})
def first(n): return lambda: beside.work(n)

for size in (1, 2):
    @cuptiprof.benchmark(name=f"made_{size}")
    def made(): return lambda: None
"""


def test_benchmarks_of_a_file_in_the_order_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "import cuptiprof\n@cuptiprof.benchmark\ndef not_of_the_file(): ...\ndef work(n): ..."
    )
    (tmp_path / "bench_it.py").write_text(FILE)
    file = str(tmp_path / "bench_it.py")
    assert [b.name for b in find_benchmarks(file)] == ["first", "made_1", "made_2"]
    assert [b.name for b in find_benchmarks(f"{file}::made_2")] == ["made_2"]  # loaded again, not twice
    with pytest.raises(BenchError, match=r"no benchmark 'frist' \(did you mean first\?\)"):
        find_benchmarks(f"{file}::frist")


@pytest.mark.parametrize(
    "text,message",
    [
        ("x = 1", "has no benchmarks"),
        ("def f(:", "SyntaxError"),
        ("1 / 0", r"ZeroDivisionError: division by zero\n  bench_bad.py:1: 1 / 0"),
        ("import cuptiprof\nfor i in 1, 2: cuptiprof.benchmark(name='a')(lambda: 0)", "two benchmarks called 'a'"),
        ("import cuptiprof\ncuptiprof.benchmark(params={'n': []})(lambda n: 0)", "has no values"),
    ],
)
def test_files_without_usable_benchmarks(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bench_bad.py").write_text(text)
    with pytest.raises(BenchError, match=message):
        find_benchmarks(str(tmp_path / "bench_bad.py"))


def test_a_missing_file_suggests_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "bench_gemm.py").write_text("")
    with pytest.raises(BenchError, match=r"did you mean bench_gemm.py\?"):
        find_benchmarks(str(tmp_path / "bench_gem.py"))


def test_a_file_named_like_a_module_in_use(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("import cuptiprof\n@cuptiprof.benchmark\ndef f(): ...")
    assert find_benchmarks(str(tmp_path / "json.py"))[0].module == "cuptiprof_benchmarks_json"
    import json

    assert json.dumps({}) == "{}"


@pytest.fixture
def interrupted() -> tuple[list[Task], list[Row]]:
    tasks = tasks_of([make(lambda n: lambda: n, params={"n": [1, 2, 3]}, name="f", l2="cold")])
    rows = run(tasks[:2], measure=fake_measure([]))
    return tasks, rows


def left(
    tasks: list[Task], rows: list[Row], environment: Mapping[str, Any] = ENVIRONMENT, **more: Any
) -> tuple[list[str], Any]:
    todo = plan(tasks, Results(tuple(rows), environment), environment, **more)
    return [str(t.point) for t in todo.left], dict(todo.reasons)


def test_resuming_skips_what_is_there(interrupted: tuple[list[Task], list[Row]]) -> None:
    tasks, rows = interrupted
    assert left(tasks, rows) == (["n=3"], {})


def test_resuming_measures_again_what_may_differ(interrupted: tuple[list[Task], list[Row]]) -> None:
    tasks, (one, two) = interrupted
    changed = Row(one.benchmark, one.params, one.measurement, source="other", arguments=one.arguments)
    assert left(tasks, [changed, two]) == (["n=1", "n=3"], {"the benchmark's file has changed since": 1})
    warm = Row(one.benchmark, one.params, one.measurement, source=one.source, arguments={"l2": "warm"})
    assert left(tasks, [warm, two]) == (["n=1", "n=3"], {"other arguments (l2)": 1})
    _, reasons = left(tasks, [one, two], {**ENVIRONMENT, "chip": "A100"})
    assert reasons == {"another chip: H100 then, A100 now": 2}


def test_resuming_tries_failures_again(interrupted: tuple[list[Task], list[Row]]) -> None:
    tasks, (one, two) = interrupted
    bad = Row(one.benchmark, one.params, failure=Failure("error", "x"), source=one.source, arguments=one.arguments)
    assert left(tasks, [bad, two]) == (["n=1", "n=3"], {"they had failed": 1})
    late = Failure("timeout", "x", seconds=60.0)
    slow = Row(one.benchmark, one.params, failure=late, source=one.source, arguments=one.arguments)
    assert left(tasks, [slow, two], timeout=60.0) == (["n=3"], {})
    assert left(tasks, [slow, two], timeout=90.0)[0] == ["n=1", "n=3"]


def test_an_unknown_source_is_never_trusted(interrupted: tuple[list[Task], list[Row]]) -> None:
    tasks, (one, _) = interrupted
    assert tasks[0].benchmark.source  # of this file
    blank = Row(one.benchmark, one.params, measurement(1.0), source="", arguments=one.arguments)
    assert left(tasks, [blank])[0] == ["n=1", "n=2", "n=3"]
