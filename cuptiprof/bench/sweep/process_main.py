"""What a process does that measures points for another one: loads the benchmarks, opens the device, measures what it is told.

It hears and answers through one pipe, whose messages are those of :mod:`cuptiprof.bench.sweep.other_process`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NoReturn

from cuptiprof.bench.counted_calls import Demand
from cuptiprof.bench.environment import environment
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.sweep.discover import find_benchmarks
from cuptiprof.bench.sweep.given_values import with_values
from cuptiprof.bench.sweep.running import Task, run, tasks_of
from cuptiprof.device.devices import Device
from cuptiprof.device.locked_clocks import unlock_all
from cuptiprof.errors import BenchError, CuptiprofError

Key = tuple[str, str]
"""Of a row, and of the task that it comes from: see ``Row.key``."""

IN_PROCESS = "CUPTIPROF_BENCH_PROCESS"
"""Environment variable of a process that was started to measure: it starts none itself."""


@dataclass(frozen=True)
class SweepJob:
    """What another process has to know. It goes through a pipe.

    Attributes:
        targets: as of ``find_benchmarks``.
        given: values in place of the benchmarks', see ``with_values``.
        overrides: options of ``cuptiprof.bench`` in place of the benchmarks'.
        device: as of ``cuptiprof.bench``.
        timeout: s that a point may take with all preparation; 0: no limit.
    """

    targets: tuple[str, ...]
    given: Mapping[str, Sequence[str]] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None
    timeout: float = 0.0


def main() -> None:
    """Entrance; the number of the pipe's descriptor is the only argument."""
    os.dup2(2, 1)  # what a benchmark prints is no result
    worker = _Worker(Connection(int(sys.argv.pop())))
    try:
        worker.work()
    except KeyboardInterrupt:
        sys.exit(130)
    except CuptiprofError as e:
        worker.tell("error", (type(e).__name__, e.message, e.hint))


class _Worker:
    """Told of a sweep as it goes (a ``Watcher``), and tells the other process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._orders: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, name="cuptiprof-orders", daemon=True).start()

    def _listen(self) -> None:
        """Also while the main thread measures: when the other process is gone nobody wants the rest."""
        while True:
            try:
                self._orders.put(self._pipe.recv())
            except (EOFError, OSError):
                os._exit(1)

    def tell(self, kind: str, value: Any = None) -> None:
        self._pipe.send((kind, value))

    def work(self) -> None:
        """Measure as often as asked, until told to end.

        Raises:
            CuptiprofError: it cannot begin.
        """
        job: SweepJob = self._orders.get()
        tasks, device = self._open(job)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on there may be something to clean up
        while (wanted := self._orders.get()) is not None:
            if unknown := [key for key in wanted if key not in tasks]:
                raise BenchError(
                    f"a new process does not find the point {unknown[0][0]} {unknown[0][1]}",
                    hint="the points of a benchmark have to be the same each time its file is loaded",
                )
            run([tasks[key] for key in wanted], self, device=device, timeout=job.timeout)
            self.tell("done")

    def _open(self, job: SweepJob) -> tuple[dict[Key, Task], Device | str]:
        benchmarks = with_values([b for target in job.targets for b in find_benchmarks(target)], job.given)
        with open_gpu(job.device) as gpu:
            if "metrics" in job.overrides:  # a mistake in them is told once, not at every point
                Demand.make(job.overrides["metrics"], None, None, "").check(gpu)
            self.tell("environment", environment(gpu))
            device = gpu.device or "host"  # opened once for all points
        return {(t.benchmark.name, t.point.key): t for t in tasks_of(benchmarks, job.overrides)}, device

    def begins(self, title: str) -> None:
        self.tell("begins", title)

    def ended(self, row: Row) -> None:
        self.tell("row", row)

    def hangs(self, row: Row) -> NoReturn:
        unlock_all()
        self.tell("hangs", row)
        os._exit(1)
