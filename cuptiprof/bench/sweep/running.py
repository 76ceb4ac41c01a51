"""Runs the points of benchmarks one after the other; a point that fails is a row, and the sweep goes on."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from cuptiprof.bench.case import Case, SkipPoint
from cuptiprof.bench.measure import bench, measure_in_turn
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.points import Point, params_key
from cuptiprof.bench.results.row import Failure, Row, plain
from cuptiprof.bench.results.stored import MAX_TEXT
from cuptiprof.bench.sweep.benchmark import Benchmark
from cuptiprof.bench.sweep.failures import TimedOut, deadline, failure_of, release

Measure = Callable[..., Measurement]
MeasureInTurn = Callable[[Mapping[str, Case], Sequence[Mapping[str, Any]], Any], list[Measurement]]


@dataclass(frozen=True)
class Task:
    """A point of a benchmark, to be measured.

    Attributes:
        overrides: options of ``cuptiprof.bench`` that replace those of the benchmark.
    """

    benchmark: Benchmark
    point: Point
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.benchmark.name} {self.point}".rstrip()

    def options(self) -> dict[str, Any]:
        """For ``cuptiprof.bench``. Raises whatever a function of the parameters raises."""
        return {**self.benchmark.options_at(self.point), **self.overrides}

    def arguments(self) -> dict[str, Any]:
        """The options as a row keeps them; those that are functions of the parameters follow from source and parameters."""
        options = {**self.benchmark.options, **self.overrides}
        return {name: plain(v) for name, v in sorted(options.items()) if not inspect.isfunction(v)}

    def row(
        self,
        *,
        measurement: Measurement | None = None,
        failure: Failure | None = None,
        seconds: float = 0.0,
        in_turn: bool = False,
    ) -> Row:
        """What became of it."""
        b = self.benchmark
        compare = b.compare if in_turn else ""
        return Row(b.name, self.point.params, measurement, failure, b.source, self.arguments(), seconds, compare)


class Watcher(Protocol):
    """What is told of a sweep as it goes."""

    def begins(self, title: str) -> None:
        """A point begins; of points that are measured in turn, the first."""

    def ended(self, row: Row) -> None:
        """A point has its row."""

    def hangs(self, row: Row) -> None:
        """A point is past its limit and does not come back. Where it is measured here, this is called on another thread, and shall end the program."""


def tasks_of(benchmarks: Iterable[Benchmark], overrides: Mapping[str, Any] | None = None) -> list[Task]:
    """All points of all benchmarks, in their order; those that are measured in turn beside each other."""
    tasks = [Task(b, point, dict(overrides or {})) for b in benchmarks for point in b.points]
    return [task for group in in_groups(tasks) for task in group]


def run(
    tasks: Sequence[Task],
    watcher: Watcher | None = None,
    *,
    measure: Measure = bench,
    in_turn: MeasureInTurn = measure_in_turn,
    device: Any = None,
    timeout: float = 0.0,
) -> list[Row]:
    """Measure each task.

    Args:
        watcher: told of each point before the next begins.
        measure: what measures a function, with the signature of ``cuptiprof.bench``.
        in_turn: what measures several, with that of ``measure_in_turn``.
        device: for both.
        timeout: s that a point may take with all preparation; 0: no limit.

    Raises:
        KeyboardInterrupt: as it came; the points before have gone to `watcher`.
    """
    rows = []
    for group in in_groups(tasks):
        done = _run_in_turn(group, watcher, in_turn, device, timeout) if len(group) > 1 else []
        for task in group[len(done) :]:
            if watcher is not None:
                watcher.begins(task.title)
            done.append(_run_one(task, watcher, measure, device, timeout))
        for row in done:
            rows.append(row)
            if watcher is not None:
                watcher.ended(row)
    return rows


def in_groups(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks that are measured in turn together, in the order of the first of each."""
    out: dict[tuple[int, str], list[Task]] = {}
    for i, task in enumerate(tasks):
        compare = task.benchmark.compare
        others = params_key({n: v for n, v in task.point.params.items() if n != compare}) if compare else str(i)
        out.setdefault((id(task.benchmark), others), []).append(task)
    return list(out.values())


def _run_in_turn(
    tasks: Sequence[Task], watcher: Watcher | None, in_turn: MeasureInTurn, device: Any, timeout: float
) -> list[Row]:
    """Rows of all tasks; none where they could not be measured together, and each has to show by itself what it can."""
    began = time.monotonic()
    if watcher is not None:
        watcher.begins(tasks[0].title)

    def give_up() -> None:
        if watcher is not None:
            watcher.hangs(tasks[0].row(failure=_late(timeout), seconds=time.monotonic() - began))

    try:
        with deadline(timeout * len(tasks), give_up), contextlib.ExitStack() as stack:
            cases = {
                str(t.point.params[t.benchmark.compare]): stack.enter_context(t.benchmark.prepared(t.point))
                for t in tasks
            }
            measured = in_turn(cases, [t.options() for t in tasks], device)
    except TimedOut as e:
        release(e)
        return [t.row(failure=_late(timeout), seconds=timeout) for t in tasks]
    except (Exception, SystemExit) as e:
        release(e)
        return []
    seconds = (time.monotonic() - began) / len(tasks)
    return [
        t.row(measurement=replace(m, name=t.benchmark.name, params=t.point.params), seconds=seconds, in_turn=True)
        for t, m in zip(tasks, measured, strict=True)
    ]


def _late(timeout: float) -> Failure:
    return Failure("timeout", f"not over after {timeout:g} s", seconds=timeout)


def _run_one(task: Task, watcher: Watcher | None, measure: Measure, device: Any, timeout: float) -> Row:
    began = time.monotonic()
    late = _late(timeout)

    def give_up() -> None:
        if watcher is not None:
            watcher.hangs(task.row(failure=late, seconds=time.monotonic() - began))

    failure, measurement = None, None
    try:
        with deadline(timeout, give_up), task.benchmark.prepared(task.point) as case:
            options = {"setup": case.setup, "check": case.check, "device": device, **task.options()}
            measurement = measure(case.function, name=task.benchmark.name, params=task.point.params, **options)
    except TimedOut as e:
        failure = late
        release(e)
    except SkipPoint as e:
        failure = Failure("skipped", str(e)[:MAX_TEXT])
    except (Exception, SystemExit) as e:  # a benchmark that calls sys.exit shall not end the others
        failure = failure_of(e, _file(task.benchmark))
        release(e)
    if failure is not None:
        measurement = None  # of a point whose clean-up failed: what it leaves behind is not known
    return task.row(measurement=measurement, failure=failure, seconds=time.monotonic() - began)


def _file(benchmark: Benchmark) -> str:
    code = getattr(inspect.unwrap(benchmark.function), "__code__", None)
    return code.co_filename if code is not None else ""
