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
        result.stdout.fnmatch_lines(["*slower by 5% or more: test_it.py::test_gemm n=256: +9.9*"])


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


GATED = """
import os
from pathlib import Path
import pytest
from cuptiprof.sim.sim_device import SimDevice

SLOWER = float(os.environ.get("SLOWER", "1"))

def note(what):
    with open("notes.txt", "a") as f: f.write(what + "\\n")
    return Path("notes.txt").read_text().split().count(what)

@pytest.fixture(scope="session")
def shared():
    note("shared")
    yield
    note("shared-ended")

@pytest.fixture
def own():
    note("own")
    yield
    note("own-ended")

@pytest.mark.parametrize("what", ["same", "once", "always", "other"])
def test_gemm(shared, own, cuptiprof_bench, what):
    slow = what == "always" or (what == "once" and note("once") <= int(os.environ.get("ONCE", "1")))
    ns = int(8000 * (SLOWER if slow else 1))
    cuptiprof_bench(lambda: SimDevice().launch("gemm", duration_ns=ns), device="sim", max_seconds=0.3)
    note(f"test-{what}")

def test_plain(shared):
    assert not os.environ.get("BROKEN")
"""
GATE = ("--cuptiprof-baseline", "old.jsonl", "--cuptiprof-fail-if-slower", "5%")


@pytest.fixture
def gated(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A baseline, and all that is slower from now on."""
    run(pytester, "--cuptiprof-json", "old.jsonl", tests=GATED).assert_outcomes(passed=5)
    (pytester.path / "notes.txt").unlink()
    monkeypatch.setenv("SLOWER", "1.2")
    return pytester


def test_slower_tests_are_run_again_in_turn_before_they_fail(gated: pytest.Pytester) -> None:
    """Decided at the end, among all; each test is reported once, under its name; fixtures are made anew."""
    result = run(gated, *GATE, "--cuptiprof-json", "new.jsonl", "--junit-xml", "j.xml", "-v", tests=GATED)
    result.assert_outcomes(passed=4, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        [
            "*FAILED test_it.py::test_gemm[[]always] - Failed: slower by 5% or more: test_it*",
            "*slower by 5% or more: test_it.py::test_gemm what=always: +20.0* %*",
            "not slower when measured again: test_it.py::test_gemm what=once: *",
            "4 points compared: 2 SLOWER, 2 SAME*",
        ]
    )
    notes = (gated.path / "notes.txt").read_text().split()
    tests = [n.removeprefix("test-") for n in notes if n.startswith("test-")]
    assert tests == ["same", "once", "always", "other", "once", "always", "always", "once"]
    assert notes.count("own") == notes.count("own-ended") == len(tests)
    assert notes.count("shared") == notes.count("shared-ended") == 5
    xml = (gated.path / "j.xml").read_text()
    assert xml.count("<testcase") == 5 and xml.count("<failure") == 1 and 'tests="5"' in xml
    rows = {d["params"]["what"]: d["measurement"]["interval"]["median"] for d in stored(gated.path / "new.jsonl")}
    assert len(stored(gated.path / "new.jsonl")) == 4 and rows["once"] == 9600  # what was measured first


def test_slow_in_one_of_two_turns_is_not_slow(gated: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCE", "2")
    run(gated, *GATE, "-k", "once", tests=GATED).assert_outcomes(passed=1, deselected=4)
    monkeypatch.setenv("ONCE", "100")
    run(gated, *GATE, "-k", "once", tests=GATED).assert_outcomes(failed=1, deselected=4)


def test_a_run_that_ends_early_reports_what_has_passed(gated: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "1")
    result = run(gated, *GATE, "-x", "-k", "always or plain", tests=GATED)
    result.assert_outcomes(passed=1, failed=1, deselected=3)
    assert (gated.path / "notes.txt").read_text().split().count("test-always") == 1


def test_what_breaks_when_it_is_run_again_fails_as_it_does(gated: pytest.Pytester) -> None:
    tests = GATED.replace('    note(f"test-{what}")', '    assert note(f"test-{what}") < 2, "broken"')
    result = run(gated, *GATE, "-k", "once", tests=tests)
    result.assert_outcomes(failed=1, deselected=4)
    result.stdout.fnmatch_lines(["*AssertionError: broken*"])


MANY = """
import numpy as np
import pytest
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Interval
from cuptiprof.stats.statistics import median_interval
import cuptiprof_pytest.session as session

RNG = np.random.default_rng(SEED)

def bench(function, *args, name="", params=None, **more):
    samples = 1000 * np.exp(RNG.normal(0, 0.01, 200)) * function()
    i = median_interval(samples, tick=0.0)
    interval = Interval(i.median, i.low, i.high, i.confidence)
    return Measurement(name, "kernel", samples, np.arange(200.0), interval, params or {}, environment={"chip": "H100"})

session.bench = bench

@pytest.mark.parametrize("n", range(100))
def test_it(cuptiprof_bench, n):
    cuptiprof_bench(lambda: SLOW if n == 7 else 1)
"""


def many(pytester: pytest.Pytester, seed: int, slow: float, *arguments: str) -> pytest.RunResult:
    return run(pytester, "-q", *arguments, tests=MANY.replace("SEED", str(seed)).replace("SLOW", str(slow)))


@pytest.mark.parametrize("seeds", [2, pytest.param(50, marks=pytest.mark.nightly)])
def test_claims_hold_for_the_whole_run(pytester: pytest.Pytester, seeds: int) -> None:
    """100 tests that nothing has changed: 5 % of the runs at most fail one (each for itself would in most); a slow-down of 5 % is found."""
    gate = ("--cuptiprof-baseline", "old.jsonl", "--cuptiprof-fail-if-slower", "0%")
    failing, found = 0, 0
    for seed in range(seeds):
        many(pytester, 2 * seed, 1, "--cuptiprof-json", "old.jsonl").assert_outcomes(passed=100)
        failing += many(pytester, 2 * seed + 1, 1, *gate).ret != 0
        result = many(pytester, 2 * seed + 1, 1.05, *gate)
        found += {"passed": 99, "failed": 1}.items() <= result.parseoutcomes().items()
        result.stdout.fnmatch_lines(["*FAILED test_it.py::test_it[[]7]*"])
    assert failing <= 0.05 * seeds and found >= 0.95 * seeds


def test_where_the_gate_cannot_see_a_measurement(pytester: pytest.Pytester) -> None:
    tests = "def test_it(request): request.getfixturevalue('cuptiprof_bench')"
    result = run(pytester, tests=tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*take cuptiprof_bench as an argument of the test*"])


def test_options_beside_xdist_are_refused(pytester: pytest.Pytester) -> None:
    # As pytest-xdist has its option.
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.getgroup('x').addoption('--numprocesses', dest='numprocesses', type=int)"
    )
    result = run(pytester, "-p", "no:xdist", "--cuptiprof-json", "o.jsonl", "--numprocesses", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*measurements beside each other disturb each other: run with -n 0*"])
    run(pytester, "-p", "no:xdist", "--cuptiprof-json", "o.jsonl", "--numprocesses", "0").assert_outcomes(passed=2)
