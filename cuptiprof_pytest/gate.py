"""``--cuptiprof-fail-if-slower``: which tests fail is known when all have measured, and what fails has been measured again.

Reports of tests that may fail are kept back until then, so that each test is reported once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from cuptiprof.bench.results.gate import TURNS, Decision
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof_pytest.session import BenchSession

FIXTURE = "cuptiprof_bench"


@dataclass(frozen=True)
class _Kept:
    """A test that has passed, and has measured something slower than its baseline."""

    item: pytest.Item
    reports: Sequence[pytest.TestReport]
    keys: frozenset[tuple[str, str]]


class Gate:
    """A plugin of pytest."""

    def __init__(self, session: BenchSession) -> None:
        self._session = session
        self._kept: list[_Kept] = []
        self._failed_again: dict[str, Sequence[pytest.TestReport]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Runs tests that measure, and reports them unless they may fail."""
        if FIXTURE not in getattr(item, "fixturenames", ()):
            return None
        if self._session.again is not None:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if not all(r.passed for r in reports):
                self._failed_again[item.nodeid] = reports
            return True
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        before = len(self._session.rows)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        rows = self._session.rows[before:]
        gated = all(r.passed and not hasattr(r, "wasxfail") for r in reports)
        if gated and self._session.may_fail(rows):
            self._kept.append(_Kept(item, reports, frozenset(row.key for row in rows)))
        else:
            _log(item, reports)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """At its end it decides."""
        decision = None
        try:
            result = yield
            if self._kept:
                decision = self._session.decide(self._measure_again)
        finally:  # also after Ctrl-C, and a -x: what has passed is reported as that
            self._session.again = None
            for kept in self._kept:
                _log(kept.item, self._final(kept, decision))
        return result

    def _measure_again(self, rows: Sequence[Row]) -> Sequence[Results]:
        """The tests once more in turn, there and back."""
        slower = {row.key for row in rows}
        items = [kept.item for kept in self._kept if kept.keys & slower]
        turns = []
        for turn in range(TURNS):
            self._session.again = []
            for item in items if turn % 2 == 0 else items[::-1]:
                # No next one: whatever a test shares with others is made anew as well.
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            turns.append(Results(tuple(self._session.again)))
        self._session.again = None
        return turns

    def _final(self, kept: _Kept, decision: Decision | None) -> Sequence[pytest.TestReport]:
        if kept.item.nodeid in self._failed_again:
            return self._failed_again[kept.item.nodeid]
        failing = [p for p in decision.failing if p.new.key in kept.keys] if decision is not None else []
        if not failing:
            return kept.reports
        assert decision is not None and self._session.limit is not None
        lines = replace(decision, failing=tuple(failing), passing=()).lines(self._session.limit)
        for report in kept.reports:
            if report.when == "call":
                report.outcome = "failed"
                report.longrepr = _representation(kept.item, "\n".join(lines))
        return kept.reports


def _representation(item: pytest.Item, text: str) -> Any:
    try:
        pytest.fail(text, pytrace=False)
    except pytest.fail.Exception:
        return item.repr_failure(pytest.ExceptionInfo.from_current())


def _log(item: pytest.Item, reports: Sequence[pytest.TestReport]) -> None:
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
