"""The fixture ``cuptiprof_bench`` in other people's test runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import os
import pytest
from cuptiprof.sim.sim_device import SimDevice

SLOWER = float(os.environ.get("SLOWER", "1"))

@pytest.mark.parametrize("n", [256, 512])
def test_gemm(cuptiprof_bench, n):
    sim = SimDevice()
    def gemm(size):
        sim.launch("gemm", duration_ns=int(8 * size * SLOWER))
    m = cuptiprof_bench(gemm, n, device="sim")
    assert m.median == int(8 * n * SLOWER)
    assert m.kernels[0].name == "gemm"
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLOWER", raising=False)


def run(pytester: pytest.Pytester, *arguments: str, tests: str = TESTS) -> pytest.RunResult:
    pytester.makepyfile(test_it=tests)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def stored(path: Path) -> list[dict[str, Any]]:
    return [d for d in map(json.loads, path.read_text().splitlines()) if d["kind"] == "point"]


def test_a_measurement_and_a_table_at_the_end(pytester: pytest.Pytester) -> None:
    result = run(pytester)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*= cuptiprof =*", "*SIMULATED*", "Benchmark * n *Time*", "test_it.py::test_gemm  256  2.0480us*", "test_it.py::test_gemm  512  4.0960us*"])  # fmt: skip


def test_results_are_those_of_cuptiprof_bench(pytester: pytest.Pytester) -> None:
    run(pytester, "--cuptiprof-json", "o.jsonl").assert_outcomes(passed=2)
    lines = stored(pytester.path / "o.jsonl")
    assert [(d["benchmark"], d["params"]) for d in lines] == [
        ("test_it.py::test_gemm", {"n": 256}),
        ("test_it.py::test_gemm", {"n": 512}),
    ]
    shown = pytester.run(sys.executable, "-m", "cuptiprof", "bench", "o.jsonl", "--baseline", "o.jsonl")
    assert shown.ret == 0
    shown.stdout.fnmatch_lines(["2 points compared: 2 SAME"])
    run(pytester, "--cuptiprof-json", "o.jsonl", "-k", "256").assert_outcomes(passed=1, deselected=1)
    assert len(stored(pytester.path / "o.jsonl")) == 1  # of this run


@pytest.mark.parametrize("limit,failed", [("5%", 2), ("20%", 0)])
def test_a_slower_measurement_fails_its_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, limit: str, failed: int
) -> None:
    run(pytester, "--cuptiprof-json", "old.jsonl").assert_outcomes(passed=2)
    monkeypatch.setenv("SLOWER", "1.1")
    result = run(pytester, "--cuptiprof-baseline", "old.jsonl", "--cuptiprof-fail-if-slower", limit)
    result.assert_outcomes(passed=2 - failed, failed=failed)
    assert result.ret == (1 if failed else 0)
    result.stdout.fnmatch_lines(["2 points compared: 2 SLOWER"])
    if failed:
        result.stdout.fnmatch_lines(["*test_it.py::test_gemm n=256 is slower by 5% or more: +9.9*"])


def test_a_baseline_of_other_tests_too(pytester: pytest.Pytester) -> None:
    more = TESTS + "\ndef test_other(cuptiprof_bench): cuptiprof_bench(lambda: SimDevice().launch('k'), device='sim')\n"
    run(pytester, "--cuptiprof-json", "old.jsonl", tests=more).assert_outcomes(passed=3)
    result = run(pytester, "--cuptiprof-baseline", "old.jsonl", "-k", "gemm", tests=more)
    result.stdout.fnmatch_lines(["2 points compared: 2 SAME"])
    result.stdout.no_fnmatch_line("*only in the baseline*")


def test_it_costs_nothing_when_it_is_not_used(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import sys\n"
        "def heavy(): return [m for m in ('cuptiprof', 'cuptiprof._core', 'torch', 'numpy') if m in sys.modules]\n"
        "def pytest_collection_finish(): assert heavy() == []\n"
        "def pytest_sessionfinish(): print('HEAVY', heavy())\n"
    )
    result = run(pytester, "-s", tests="def test_nothing(): pass")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*HEAVY []*"])
    result.stdout.no_fnmatch_line("*= cuptiprof =*")


def test_several_measurements_in_a_test_need_names(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        tests="""
from cuptiprof.sim.sim_device import SimDevice
def test_named(cuptiprof_bench):
    for name in "ab": cuptiprof_bench(lambda: SimDevice().launch(name), name=name, device="sim")
def test_unnamed(cuptiprof_bench):
    for _ in "ab": cuptiprof_bench(lambda: SimDevice().launch("k"), device="sim")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*test_it.py::test_unnamed has been measured in this run before*", "test_it.py::test_named b *"]
    )


def test_what_raises_fails_as_it_does_and_is_a_row(pytester: pytest.Pytester) -> None:
    result = run(
        pytester, "--cuptiprof-json", "o.jsonl",
        tests="""
def test_raises(cuptiprof_bench): cuptiprof_bench(lambda: 1 / 0, device="sim")
def test_nothing(cuptiprof_bench): cuptiprof_bench(lambda: None, device="sim")
def test_caught(cuptiprof_bench):
    try: cuptiprof_bench(lambda: None, device="sim")
    except Exception: pass
""",
    )  # fmt: skip
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*ZeroDivisionError: division by zero*", "*gives the GPU nothing to do*"])
    assert [d["failure"]["message"][:17] for d in stored(pytester.path / "o.jsonl")] == [
        "ZeroDivisionError",
        *2 * ["BenchError: 'test"],
    ]


def test_parameters_that_are_objects(pytester: pytest.Pytester) -> None:
    result = run(
        pytester, "--cuptiprof-json", "o.jsonl",
        tests="""
import pytest
from cuptiprof.sim.sim_device import SimDevice
class Shape: pass
@pytest.mark.parametrize("shape", [Shape(), Shape()], ids=["small", "large[0]"])
def test_it(cuptiprof_bench, shape): cuptiprof_bench(lambda: SimDevice().launch("k"), device="sim")
class TestIt:
    @pytest.mark.parametrize("f", [len])
    def test_in(self, cuptiprof_bench, f): cuptiprof_bench(lambda: SimDevice().launch("k"), device="sim")
""",
    )  # fmt: skip
    result.assert_outcomes(passed=3)
    rows = [(d["benchmark"], d["params"]) for d in stored(pytester.path / "o.jsonl")]
    assert rows == [
        ("test_it.py::test_it", {"id": "small"}),
        ("test_it.py::test_it", {"id": "large[0]"}),
        ("test_it.py::TestIt::test_in", {"f": "len"}),
    ]


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["--cuptiprof-fail-if-slower", "5%"], "*needs --cuptiprof-baseline*"),
        (["--cuptiprof-fail-if-slower", "5", "--cuptiprof-baseline", "x"], "*write 5%*"),
        (["--cuptiprof-baseline", "none.jsonl"], "*cannot read none.jsonl*"),
        (["--cuptiprof-json", "test_it.py"], "*not JSON*"),
    ],
)
def test_options_that_cannot_be(pytester: pytest.Pytester, arguments: list[str], message: str) -> None:
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert "SimDevice" in (pytester.path / "test_it.py").read_text()


def test_side_by_side_is_refused(pytester: pytest.Pytester) -> None:
    # What pytest-xdist puts into the configuration of its workers.
    pytester.makeconftest("def pytest_configure(config): config.workerinput = {}")
    result = run(pytester, "-p", "no:xdist")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*measurements beside each other disturb each other: run with -n 0*"])


@pytest.mark.parametrize("arguments", [["--collect-only"], ["--help"], ["-k", "nothing"]])
def test_a_run_that_measures_nothing_keeps_older_results(pytester: pytest.Pytester, arguments: list[str]) -> None:
    run(pytester, "--cuptiprof-json", "o.jsonl").assert_outcomes(passed=2)
    before = (pytester.path / "o.jsonl").read_bytes()
    result = run(pytester, "--cuptiprof-json", "o.jsonl", *arguments)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert (pytester.path / "o.jsonl").read_bytes() == before


def test_functions_in_turn(pytester: pytest.Pytester) -> None:
    tests = """
from cuptiprof.bench import Count
from cuptiprof.sim.sim_device import SimDevice

def test_softmax(cuptiprof_bench):
    launch = SimDevice().launch
    old, new = (lambda n, ns=ns: launch("k", duration_ns=n * ns) for ns in (1000, 500))
    found = cuptiprof_bench.compare({"old": old, "new": new}, 8, device="sim", stop=Count(12))
    assert found.verdicts["new"].kind.value == "FASTER" and found["old"].median == 8000
"""
    result = run(pytester, "--cuptiprof-json", "o.jsonl", tests=tests)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_softmax*old*8.0000us*", "*test_softmax*new*4.0000us*x2.000*FASTER*", "new against old: speed-up x2.000*"])  # fmt: skip
    assert [(d["params"], d["compare"]) for d in stored(pytester.path / "o.jsonl")] == [
        ({"impl": i}, "impl") for i in ("old", "new")
    ]
