"""What one run of pytest has measured."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cuptiprof.bench.case import Case
from cuptiprof.bench.compare import Comparison, compare
from cuptiprof.bench.measure import bench
from cuptiprof.bench.results.baseline import ComparedPoint, compare_results, compare_rows
from cuptiprof.bench.results.comparison_table import comparison_report
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Scalar
from cuptiprof.bench.results.points import label, labels
from cuptiprof.bench.results.row import Row, plain
from cuptiprof.bench.results.store import Results, ResultsWriter, read_results
from cuptiprof.bench.sweep.comparing import IMPL
from cuptiprof.bench.sweep.failures import failure_of
from cuptiprof.errors import BenchError, ResultError

OF_ONE_TEST = ("clocks", "time")  # of the environment; the rest is that of the whole run


class BenchSession:
    """The measurements of a run, their file and the baseline."""

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
        self._old = {row.key: row for row in self._baseline.rows} if self._baseline is not None else {}

    def begin(self) -> None:
        """A test is about to measure: older results make way only now, not for a run that collects tests or prints its help.

        Raises:
            ResultError: the file cannot be written.
        """
        if self._json and self._writer is None:
            self._writer = ResultsWriter(self._json, {}, overwrite=True)

    def add(self, row: Row) -> str:
        """Keep and store a row; why its test fails for it, empty if it does not.

        Raises:
            BenchError: the test has measured something of that name before.
        """
        if any(r.key == row.key for r in self.rows):
            raise BenchError(f"{row.title} has been measured in this run before", hint="name= tells measurements apart")
        self.rows.append(row)
        if row.measurement is not None and not self._environment:
            self._environment = {k: v for k, v in row.measurement.environment.items() if k not in OF_ONE_TEST}
            if self._writer is not None:
                self._writer.begin_run(self._environment)
        if self._writer is not None:
            self._writer.add(row)
        old = self._old.get(row.key)
        if old is None or self.limit is None:
            return ""
        point = ComparedPoint(old, row, *compare_rows(old, row))
        return (
            f"{row.title} is slower by {100 * self.limit:g}% or more: {point.reason}" if point.fails(self.limit) else ""
        )

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
            terminal.write("\n" + comparison_report(compare_results(old, results), self._environment).to("text"))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class BenchFixture:
    """What a test calls."""

    def __init__(self, session: BenchSession, item: Any) -> None:
        self._session = session
        self._item = item
        self.slower: list[str] = []

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
        if slower := self._session.add(make_row(measurement=m, seconds=time.monotonic() - began)):
            self.slower.append(slower)
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
            row = Row(title, shown, measured, None, self._source(), arguments, seconds, IMPL)
            if slower := self._session.add(row):
                self.slower.append(slower)
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
