"""A sweep of ``cuptiprof bench``: points to measure here or in other processes, the file they go to, what is there already."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuptiprof.bench.counted_calls import Demand
from cuptiprof.bench.environment import environment
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.results.gate import TURNS
from cuptiprof.bench.results.history import file_of_run
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results, ResultsWriter, pool, read_processes
from cuptiprof.bench.sweep.failures import release_cache
from cuptiprof.bench.sweep.given_values import parse_values
from cuptiprof.bench.sweep.process_main import Key, SweepJob
from cuptiprof.bench.sweep.resume import plan
from cuptiprof.bench.sweep.run_benchmarks import in_processes
from cuptiprof.bench.sweep.running import Task, run
from cuptiprof.cli.bench_progress import Progress, describe
from cuptiprof.device.locked_clocks import unlock_all
from cuptiprof.errors import BenchError, CuptiprofError
from cuptiprof.text.names import printable


@dataclass(frozen=True)
class SweepEnd:
    """How measuring ended: by itself, by Ctrl-C, or by an error (a full disk, a process that died)."""

    interrupted: bool = False
    error: CuptiprofError | None = None


class Sweep:
    """Told of each point as it begins and ends.

    Attributes:
        begun: a device has been opened, here or in another process.
    """

    def __init__(self, arguments: argparse.Namespace, tasks: Sequence[Task]) -> None:
        """Opens the device, if it measures here, and the file of results.

        Raises:
            BenchError, MetricError, ResultError: it cannot begin.
            DeviceError: there is no device.
        """
        self._arguments, self._all = arguments, tuple(tasks)
        self._tasks = {(t.benchmark.name, t.point.key): t for t in tasks}
        if len(self._tasks) < len(tasks):
            raise BenchError("two benchmarks have the same name and points", hint="name= tells them apart")
        self._processes: int = arguments.processes
        self.begun = False
        self._stored = self._read()
        self._done: dict[int, tuple[list[Row], Mapping[str, Any]]] = {}
        self._progress = Progress(0)
        self._writer: ResultsWriter | None = None
        self._into: list[str] = []
        if self._processes == 1:
            with open_gpu(arguments.device) as gpu:
                if arguments.metrics is not None:  # a mistake in them is told once, not at every point
                    Demand.make(arguments.metrics, None, None, "").check(gpu)
                self._device = gpu.device or "host"  # opened once for all points
                self._left = self._begin_process(1, environment(gpu))

    def _read(self) -> Mapping[int, Results]:
        a = self._arguments
        if not (a.resume and os.path.exists(a.json) and os.path.getsize(a.json)):
            return {}
        stored = read_processes(a.json)
        if (most := max(stored)) > self._processes:
            raise BenchError(f"{a.json} holds {most} processes", hint=f"--processes {most} goes on with it")
        return stored

    def _begin_process(self, number: int, surroundings: Mapping[str, Any]) -> Sequence[Key]:
        """What is left for a process, whose environment is known now. Raises ResultError: the file cannot be written."""
        a, keys = self._arguments, list(self._tasks)
        rows: list[Row] = []
        self._done[number] = rows, surroundings
        if number in self._stored:
            todo = plan(self._all, self._stored[number], surroundings, timeout=a.timeout)
            rows += todo.done
            keys = [(t.benchmark.name, t.point.key) for t in todo.left]
            for line in todo.lines():
                say(f"{self._of(number)}{line}")
        if a.json and self._writer is None:
            if os.path.isdir(a.json):
                a.json = str(file_of_run(a.json, surroundings))
                self._into = ["--json", a.json]
                say(f"results go to {a.json}")
            self._writer = ResultsWriter(a.json, surroundings, resume=a.resume, overwrite=a.force_overwrite)
            for note in self._writer.notes:
                say(note)
        elif self._writer is not None:
            self._writer.begin_run(surroundings, number)
        self.begun = True
        if self._processes > 1:
            self._begin_progress(len(keys), self._of(number))
        return keys

    def _of(self, number: int) -> str:
        return f"process {number} of {self._processes}: " if self._processes > 1 else ""

    def _begin_progress(self, points: int, of: str) -> None:
        self._progress.__exit__(None, None, None)
        self._progress = Progress(points, of)
        self._progress.__enter__()

    def begins(self, title: str) -> None:
        """A point begins."""
        self._progress.begins(title)

    def ended(self, row: Row) -> None:
        """A point has its row."""
        self._done[len(self._done)][0].append(row)
        if self._writer is not None:
            self._writer.add(row)
        self._progress.ended(row)

    def run(self) -> SweepEnd:
        """Measure what is left."""
        try:
            with contextlib.redirect_stdout(sys.stderr):
                if self._processes == 1:
                    left = [self._tasks[key] for key in self._left]
                    self._begin_progress(len(left), "")
                    run(left, self, device=self._device, timeout=self._arguments.timeout)
                else:
                    in_processes(self._job(), self._processes, self._all, self._begin_process, self)
        except KeyboardInterrupt:
            return SweepEnd(interrupted=True)
        except CuptiprofError as e:  # what has been measured is shown at least
            return SweepEnd(error=e)
        finally:
            self._progress.__exit__(None, None, None)
            if self._writer is not None:
                self._writer.close()
        return SweepEnd()

    def _job(self) -> SweepJob:
        a = self._arguments
        return SweepJob(tuple(a.target), parse_values(a.param), overrides(a), a.device, a.timeout)

    def results(self) -> Results:
        """What there is, in the order of the sweep."""
        order = {key: i for i, key in enumerate(self._tasks)}
        rows = pool([Results(tuple(rows), surroundings) for rows, surroundings in self._done.values()])
        return Results(tuple(sorted(rows.rows, key=lambda row: order[row.key])), rows.environment)

    def measure_again(self, rows: Sequence[Row]) -> Sequence[Results]:
        """In new processes, every second in the opposite order; see ``MeasureAgain``.

        One process says nothing of what differs between processes: then a point must be slower in each of two others.

        Raises:
            CuptiprofError: it cannot be done.
            KeyboardInterrupt: as it came.
        """
        count = max(self._processes, TURNS)
        say(f"{len(rows)} of the points are slower than the baseline: measured again in {count} new processes")
        release_cache()
        again = _Again([row.key for row in rows], count)
        with again:
            in_processes(self._job(), count, self._all, again.begins_process, again)
        return again.turns if self._processes == 1 else [pool(again.turns)]

    def how_far(self) -> str:
        """Of a sweep that ended too early."""
        done = sum(len(rows) for rows, _ in self._done.values())
        several = f" in {self._processes} processes" if self._processes > 1 else ""
        return f"after {done} of {len(self._tasks) * self._processes} points{several}"

    def how_to_go_on(self) -> str:
        """The command that does."""
        if self._writer is None:
            return "Nothing was stored; with --json OUT it could go on."
        words = [w for w in sys.argv[1:] if w not in ("--resume", "-f", "--force-overwrite")]
        # The last --json counts: of a folder it is the file in it.
        return f"To go on: {shlex.join(['cuptiprof', *words, *self._into, '--resume'])}"

    def hangs(self, row: Row) -> None:
        """Its kernel or native call does not end. Nothing can be done about that from inside."""
        if self._processes > 1:
            self.ended(row)
            return
        try:
            if self._writer is not None:
                self._writer.add(row)
            say(f"{describe(row)}; it does not come back, so the sweep ends here. {self.how_to_go_on()}")
        finally:
            sys.stderr.flush()
            unlock_all()
            os._exit(1)


class _Again:
    """Points that are measured once more."""

    def __init__(self, keys: Sequence[Key], processes: int) -> None:
        self._keys, self._processes = keys, processes
        self._done: list[tuple[list[Row], Mapping[str, Any]]] = []
        self._progress = Progress(0)

    @property
    def turns(self) -> list[Results]:
        return [Results(tuple(rows), surroundings) for rows, surroundings in self._done]

    def __enter__(self) -> _Again:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)

    def begins_process(self, number: int, surroundings: Mapping[str, Any]) -> Sequence[Key]:
        self._done.append(([], surroundings))
        self._progress.__exit__(None, None, None)
        self._progress = Progress(len(self._keys), f"again, process {number} of {self._processes}: ")
        self._progress.__enter__()
        return self._keys if number % 2 else self._keys[::-1]

    def begins(self, title: str) -> None:
        self._progress.begins(title)

    def ended(self, row: Row) -> None:
        self._done[-1][0].append(row)
        self._progress.ended(row)

    def hangs(self, row: Row) -> None:
        self.ended(row)


def overrides(a: argparse.Namespace) -> Mapping[str, Any]:
    """Options of ``cuptiprof.bench`` from the command line."""
    metrics = tuple(m.strip() for m in a.metrics.split(",") if m.strip()) if a.metrics is not None else None
    given = {
        "strategy": a.strategy,
        "metrics": metrics,
        "l2": a.l2,
        "max_seconds": a.time,
        "lock_clocks": a.lock_clocks,
        "energy": a.energy or None,
        "memory": a.memory or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def say(text: str) -> None:
    """A line of ours on stderr."""
    print("\n".join(f"cuptiprof: {printable(line)}" for line in text.splitlines()), file=sys.stderr)
