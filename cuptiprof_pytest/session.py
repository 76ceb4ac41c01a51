"""What one run of pytest has measured."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cuptiprof.bench.case import Case
from cuptiprof.bench.compare import Comparison, compare
from cuptiprof.bench.measure import bench
from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.comparison_table import comparison_report
from cuptiprof.bench.results.gate import Decision, MeasureAgain, decide_gate
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Scalar
from cuptiprof.bench.results.points import label, labels
from cuptiprof.bench.results.row import Row, plain
from cuptiprof.bench.results.store import Results, ResultsWriter, read_results
from cuptiprof.bench.sweep.comparing import IMPL
from cuptiprof.bench.sweep.failures import failure_of
from cuptiprof.errors import BenchError, ResultError
from cuptiprof.text.names import printable

OF_ONE_TEST = ("clocks", "time")  # of the environment; the rest is that of the whole run


class BenchSession:
    """The measurements of a run, their file and the baseline.

    Attributes:
        rows: what has been measured.
        limit: 0.05: what is slower by 5 % fails its test; None: nothing does.
        again: what is measured for the second time goes here meanwhile; it is neither stored nor shown.
    """

    def __init__(self, json: str | None, baseline: str | None, limit: str | None) -> None:
        """Raises pytest.UsageError for options that cannot be."""
        self.rows: list[Row] = []
        self.limit = _percent(limit) if limit else None
        if self.limit is not None and not baseline:
            raise pytest.UsageError("--cuptiprof-fail-if-slower needs --cuptiprof-baseline")
        try:
            self._baseline = read_results(baseline) if baseline else None
            if json and os.path.lexists(json) and (not os.path.isfile(json) or os.path.getsize(json)):
                read_results(json)  # refuses what is not ours
        except ResultError as e:
            raise pytest.UsageError(str(e)) from None
        self._json = json
        self._writer: ResultsWriter | None = None
        self._environment: dict[str, Any] = {}
        self.decision: Decision | None = None
        self.again: list[Row] | None = None

    def begin(self) -> None:
        """A test is about to measure: older results make way only now, not for a run that collects tests or prints its help.

        Raises:
            ResultError: the file cannot be written.
        """
        if self._json and self._writer is None:
            self._writer = ResultsWriter(self._json, {}, overwrite=True)

    def add(self, row: Row) -> None:
        """Keep and store a row.

        Raises:
            BenchError: the test has measured something of that name before.
        """
        if self.again is not None:
            self.again.append(row)
            return
        if any(r.key == row.key for r in self.rows):
            raise BenchError(f"{row.title} has been measured in this run before", hint="name= tells measurements apart")
        self.rows.append(row)
        if row.measurement is not None and not self._environment:
            self._environment = {k: v for k, v in row.measurement.environment.items() if k not in OF_ONE_TEST}
            if self._writer is not None:
                self._writer.begin_run(self._environment)
        if self._writer is not None:
            self._writer.add(row)

    def may_fail(self, rows: Sequence[Row]) -> bool:
        """Whether one of them fails when it is judged for itself; only then it may among all of the run."""
        if self.limit is None or self._baseline is None or not rows:
            return False
        return bool(compare_results(self._baseline, Results(tuple(rows))).failing(self.limit))

    def decide(self, measure_again: MeasureAgain | None) -> Decision:
        """What fails, of all that has been measured; see ``decide_gate``."""
        assert self.limit is not None and self._baseline is not None
        results = Results(tuple(self.rows), self._environment)
        self.decision = decide_gate(self._baseline, results, self.limit, measure_again)
        return self.decision

    def summarize(self, terminal: Any) -> None:
        """Write the tables to pytest's terminal."""
        if not self.rows:
            return
        results = Results(tuple(self.rows), self._environment)
        terminal.section("cuptiprof")
        terminal.write(results.report().to("text"))
        if self._baseline is not None:
            # A run of some of the tests says nothing of the others.
            run = {row.benchmark for row in self.rows}
            old = Results(tuple(r for r in self._baseline.rows if r.benchmark in run), self._baseline.environment)
            if self.decision is not None and self.limit is not None:
                for line in self.decision.lines(self.limit):
                    terminal.line(printable(line))
            terminal.write("\n" + comparison_report(compare_results(old, results), self._environment).to("text"))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class BenchFixture:
    """What a test calls."""

    def __init__(self, session: BenchSession, item: Any) -> None:
        self._session = session
        self._item = item

    def __call__(
        self,
        function: Callable[..., object],
        /,
        *args: Any,
        name: str = "",
        params: Mapping[str, Scalar] | None = None,
        setup: Callable[[], object] | None = None,
        check: Any = None,
        device: str | None = None,
        **keywords: Any,
    ) -> Measurement:
        """Measure ``function(*args)``.

        Args:
            name: tells several measurements of one test apart.
            params: beside the test's own.
            setup, check, device, keywords: as of ``cuptiprof.bench``.

        Raises:
            BenchError: it cannot be measured, or was before.
            Exception: whatever the function raises.
        """
        title = f"{self._title()} {name}".rstrip()
        params = {**self._params(), **labels(params or {})}
        given = {"device": device, "setup": setup, **keywords}
        arguments = {k: plain(v) for k, v in sorted(given.items()) if v is not None}
        make_row = partial(Row, title, params, source=self._source(), arguments=arguments)
        began = time.monotonic()
        try:
            m = bench(function, *args, name=title, params=params, setup=setup, check=check, device=device, **keywords)
        except Exception as e:
            failure = failure_of(e, str(self._item.path))
            self._session.add(make_row(failure=failure, seconds=time.monotonic() - began))
            raise
        self._session.add(make_row(measurement=m, seconds=time.monotonic() - began))
        return m

    def compare(
        self,
        functions: Mapping[str, Callable[..., object] | Case],
        /,
        *args: Any,
        name: str = "",
        params: Mapping[str, Scalar] | None = None,
        **keywords: Any,
    ) -> Comparison:
        """Measure functions in turn, as ``cuptiprof.compare``; each is a row, with the parameter "impl".

        Raises:
            BenchError, Exception: as ``__call__``.
        """
        began = time.monotonic()
        params = {**self._params(), **labels(params or {})}
        found = compare(functions, *args, params=params, **keywords)
        arguments = {k: plain(v) for k, v in sorted(keywords.items()) if v is not None}
        seconds = (time.monotonic() - began) / len(found.measurements)
        title = f"{self._title()} {name}".rstrip()
        for m in found.measurements:
            shown = {**params, IMPL: m.name}
            measured = replace(m, name=title, params=shown)
            self._session.add(Row(title, shown, measured, None, self._source(), arguments, seconds, IMPL))
        return found

    def _source(self) -> str:
        return hashlib.sha256(Path(self._item.path).read_bytes()).hexdigest()

    def _title(self) -> str:
        """The test's address without its parameters."""
        spec = getattr(self._item, "callspec", None)
        nodeid: str = self._item.nodeid
        return nodeid.removesuffix(f"[{spec.id}]") if spec is not None else nodeid

    def _params(self) -> dict[str, Scalar]:
        spec = getattr(self._item, "callspec", None)
        if spec is None:
            return {}
        try:
            return {name: label(value) for name, value in spec.params.items()}
        except BenchError:  # an object without a name that lasts: pytest has one for the whole combination
            return {"id": str(spec.id)}


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    if match is None:
        raise pytest.UsageError(f"--cuptiprof-fail-if-slower: {text!r} is no percentage: write 5%")
    return float(match.group(1)) / 100
