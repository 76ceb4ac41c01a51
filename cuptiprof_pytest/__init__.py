"""The fixtures ``cuptiprof_profile``: what a test launches, and ``cuptiprof_bench``: measurements in tests, stored and compared like those of
``cuptiprof bench``.

A package of its own: pytest imports it in every run, and ``cuptiprof`` itself (with its native module) only when a test uses one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cuptiprof_pytest.profiling import ProfileFixture, SavedRuns
    from cuptiprof_pytest.session import BenchFixture, BenchSession

_SESSION: pytest.StashKey[BenchSession] = pytest.StashKey()
_RUNS: pytest.StashKey[SavedRuns] = pytest.StashKey()
BESIDE = "measurements beside each other disturb each other: run with -n 0"
_OPTIONS = ("json", "baseline", "fail_if_slower")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cuptiprof", "the fixtures cuptiprof_profile and cuptiprof_bench")
    group.addoption(
        "--cuptiprof-save",
        metavar="FOLDER",
        help="save what tests profile there, a run each; `cuptiprof report FOLDER` shows them",
    )
    group.addoption(
        "--cuptiprof-json", metavar="OUT", help="store the measurements of this run there (replaces older ones)"
    )
    group.addoption("--cuptiprof-baseline", metavar="RESULTS", help="judge each measurement against these")
    group.addoption(
        "--cuptiprof-fail-if-slower",
        metavar="P%",
        help="a test fails if a measurement is SLOWER than the baseline, among all of the run, its whole interval is at or above P%%, "
        "and so it is when it is measured again at the end of the run",
    )


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("cuptiprof_save"):
        from cuptiprof_pytest.profiling import SavedRuns

        config.stash[_RUNS] = SavedRuns(folder)  # a folder that cannot be written is said before the first test
    if any(config.getoption(f"cuptiprof_{name}") for name in _OPTIONS):
        if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):  # pytest-xdist's -n
            raise pytest.UsageError(f"--cuptiprof options: {BESIDE}")
        session = _session(config)  # a baseline that cannot be read is said before the first test
        if session.limit is not None:
            from cuptiprof_pytest.gate import Gate

            config.pluginmanager.register(Gate(session), "cuptiprof-gate")


def _session(config: pytest.Config) -> BenchSession:
    if _SESSION not in config.stash:
        from cuptiprof_pytest.session import BenchSession

        json, baseline, limit = (config.getoption(f"cuptiprof_{name}") for name in _OPTIONS)
        config.stash[_SESSION] = BenchSession(json, baseline, limit)
    return config.stash[_SESSION]


@pytest.fixture
def cuptiprof_profile(request: pytest.FixtureRequest) -> Iterator[ProfileFixture]:
    """``with cuptiprof_profile(**options) as prof:`` profiles a part of a test.

    `options` are those of ``cuptiprof.profile``. After the block ``prof.launches("*gemm*")`` counts kernels by name, and
    ``prof.result()`` is a ``cuptiprof.Result``.
    """
    from cuptiprof_pytest.profiling import ProfileFixture

    fixture = ProfileFixture(request.node.nodeid, request.config.stash.get(_RUNS, None))
    yield fixture
    fixture.end()


@pytest.fixture
def cuptiprof_bench(request: pytest.FixtureRequest) -> BenchFixture:
    """``m = cuptiprof_bench(function, *args, **options)`` measures ``function(*args)``.

    `options` are those of ``cuptiprof.bench``. The test's own parameters become those of the measurement; several measurements in
    one test need a ``name=`` each. Returns a ``cuptiprof.bench.Measurement``.
    """
    from cuptiprof_pytest.session import BenchFixture

    if hasattr(request.config, "workerinput"):
        pytest.fail(BESIDE, pytrace=False)
    if "cuptiprof_bench" not in request.node.fixturenames:
        pytest.fail("take cuptiprof_bench as an argument of the test, or of a fixture of it", pytrace=False)
    session = _session(request.config)
    session.begin()
    return BenchFixture(session, request.node)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if _SESSION in config.stash:
        config.stash[_SESSION].summarize(terminalreporter)
    if _RUNS in config.stash and (saved := config.stash[_RUNS]).paths:
        what = f"{len(saved.paths)} profiles" if len(saved.paths) > 1 else "1 profile"
        terminalreporter.line(
            f"cuptiprof: {what} saved; cuptiprof report {saved.folder} shows {'them' if len(saved.paths) > 1 else 'it'}"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    if _SESSION in config.stash:
        config.stash[_SESSION].close()
