"""The fixture ``cuptiprof_profile`` in other people's test runs."""

from __future__ import annotations

import sys

import pytest

import cuptiprof

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from cuptiprof.sim.sim_device import SimDevice

@pytest.mark.parametrize("n", [1, 2])
def test_fused(cuptiprof_profile, n):
    with cuptiprof_profile(device="sim") as prof:
        for _ in range(n): SimDevice().launch("_Z4gemmPfS_i")
        SimDevice().launch("relu")
    assert prof.launches() == {"gemm(float*, float*, int)": n, "relu": 1}
    assert prof.launches("gemm").total() == n
    assert len(prof.result().kernels) == n + 1

def test_twice(cuptiprof_profile):
    for name in ("a", "b"):
        with cuptiprof_profile(device="sim", kernels="a") as prof: SimDevice().launch(name)
        assert prof.launches() == ({"a": 1} if name == "a" else {})
"""


def run(pytester: pytest.Pytester, *arguments: str, tests: str = TESTS) -> pytest.RunResult:
    pytester.makepyfile(test_it=tests)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "ignore", *arguments)


def test_what_was_launched(pytester: pytest.Pytester) -> None:
    run(pytester).assert_outcomes(passed=3)
    assert not list(pytester.path.glob("*.cuptiprof"))


def test_other_kernels_fail_the_test_and_are_shown(pytester: pytest.Pytester) -> None:
    result = run(pytester, tests=TESTS.replace('"relu": 1}', '"gelu": 1}'))
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["E*AssertionError*", "E*{'relu': 1}*", "E*{'gelu': 1}*"])


def test_profiles_are_saved(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--cuptiprof-save", "runs")
    result.assert_outcomes(passed=3)
    runs = {path.name: cuptiprof.open(path) for path in (pytester.path / "runs").iterdir()}
    assert {name: (len(run.kernels), run.metadata["test"]) for name, run in runs.items()} == {
        "test_it.py-test_fused_1.cuptiprof": (2, "test_it.py::test_fused[1]"),
        "test_it.py-test_fused_2.cuptiprof": (3, "test_it.py::test_fused[2]"),
        "test_it.py-test_twice.cuptiprof": (1, "test_it.py::test_twice"),
        "test_it.py-test_twice-2.cuptiprof": (0, "test_it.py::test_twice"),
    }
    result.stdout.fnmatch_lines([f"cuptiprof: 4 profiles saved; cuptiprof report {pytester.path / 'runs'} shows them"])
    shown = pytester.run(sys.executable, "-m", "cuptiprof", "report", "runs")
    assert shown.ret == 0
    shown.stdout.fnmatch_lines(["*gemm(float*, float*, int)*"])


def test_what_a_test_leaves_behind(pytester: pytest.Pytester) -> None:
    """A block that fails is saved; a session that nobody stopped ends with its test."""
    tests = """
from cuptiprof.sim.sim_device import SimDevice
def test_fails(cuptiprof_profile):
    with cuptiprof_profile(device="sim"):
        SimDevice().launch("k")
        assert False
def test_forgets(cuptiprof_profile):
    cuptiprof_profile(device="sim").start()
    SimDevice().launch("k")
def test_never_starts(cuptiprof_profile):
    cuptiprof_profile(device="sim")
def test_another(cuptiprof_profile):
    with cuptiprof_profile(device="sim") as prof: SimDevice().launch("other")
    assert prof.launches() == {"other": 1}
"""
    run(pytester, "--cuptiprof-save", "runs", tests=tests).assert_outcomes(passed=3, failed=1)
    names = {path.name: len(cuptiprof.open(path).kernels) for path in (pytester.path / "runs").iterdir()}
    assert names == {f"test_it.py-test_{n}.cuptiprof": 1 for n in ("fails", "forgets", "another")}


def test_what_cannot_be(pytester: pytest.Pytester) -> None:
    tests = "def test_it(cuptiprof_profile): cuptiprof_profile(metrcs=['ipc'])"
    result = run(pytester, tests=tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*did you mean 'metrics'*"])
    for folder in ("test_it.py", "s3://bucket"):
        result = run(pytester, "--cuptiprof-save", folder, tests=tests)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*--cuptiprof-save: *"])
