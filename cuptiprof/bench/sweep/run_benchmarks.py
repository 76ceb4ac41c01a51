"""``run_benchmarks``: all points of benchmarks, here or in processes of their own."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cuptiprof.bench.environment import environment
from cuptiprof.bench.open_gpu import open_gpu
from cuptiprof.bench.options import Options, check_names
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import MAX_PROCESSES, Results, pool
from cuptiprof.bench.sweep.benchmark import Benchmark
from cuptiprof.bench.sweep.other_process import OtherProcess
from cuptiprof.bench.sweep.process_main import Key, SweepJob
from cuptiprof.bench.sweep.running import Task, Watcher, in_groups, run, tasks_of
from cuptiprof.device.devices import Device
from cuptiprof.errors import BenchError

if TYPE_CHECKING:
    from typing_extensions import Unpack


def run_benchmarks(
    *benchmarks: Benchmark,
    device: str | Device | None = None,
    timeout: float = 0.0,
    processes: int = 1,
    **options: Unpack[Options],
) -> Results:
    """Measure all points of benchmarks, as ``cuptiprof bench`` does; failures are rows.

    Args:
        device: as of ``cuptiprof.bench``; opened once for all.
        timeout: s that a point may take with all preparation; 0: no limit. A point that waits in native code is not interrupted
            here; in processes of their own it is ended.
        processes: measure in so many new processes, one after the other, and pool what they give: intervals and verdicts then
            know what differs between processes. Each loads the file of the benchmarks.
        options: for ``cuptiprof.bench``, in place of those of the benchmarks: see :class:`cuptiprof.bench.Options`.

    Raises:
        TypeError: a keyword that is no option.
        DeviceError: there is no such device.
        BenchError: benchmarks that another process cannot find; a process that ended by itself.
        KeyboardInterrupt: as it came; all processes have ended.
    """
    check_names("run_benchmarks", options)
    if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= MAX_PROCESSES:
        raise BenchError(f"processes={processes!r} is no number of processes")
    if processes == 1:
        with open_gpu(device) as gpu:
            opened, surroundings = gpu.device or "host", environment(gpu)
        return Results(tuple(run(tasks_of(benchmarks, options), device=opened, timeout=timeout)), surroundings)
    if isinstance(device, Device):
        raise BenchError("a device that is open here cannot be used in other processes", hint='device="cuda"')
    job = SweepJob(tuple(map(_target, benchmarks)), {}, dict(options), device, timeout)
    tasks = tasks_of(benchmarks, options)
    collected = _Collected([(t.benchmark.name, t.point.key) for t in tasks])
    in_processes(job, processes, tasks, collected.begins_process, collected)
    return pool([Results(tuple(rows), surroundings) for rows, surroundings in collected.processes])


def in_processes(
    job: SweepJob,
    count: int,
    tasks: Sequence[Task],
    keys: Callable[[int, Mapping[str, Any]], Sequence[Key]],
    watcher: Watcher,
) -> None:
    """Measure in `count` new processes, one after the other.

    Args:
        tasks: all that may be asked for.
        keys: what a process is to measure: called with its number, from 1 on, and its environment.

    Raises:
        CuptiprofError: as :class:`cuptiprof.bench.sweep.other_process.OtherProcess`.
        KeyboardInterrupt: as it came; all processes have ended.
    """
    together = max(map(len, in_groups(tasks)), default=1)
    for number in range(1, count + 1):
        with OtherProcess(job, f"process {number} of {count}") as process:
            process.measure(keys(number, process.environment), watcher, together)


class _Collected:
    """The rows of each process."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self.processes: list[tuple[list[Row], Mapping[str, Any]]] = []

    def begins_process(self, number: int, surroundings: Mapping[str, Any]) -> Sequence[Key]:
        self.processes.append(([], surroundings))
        return self._keys

    def begins(self, title: str) -> None:
        pass

    def ended(self, row: Row) -> None:
        self.processes[-1][0].append(row)

    def hangs(self, row: Row) -> None:
        self.ended(row)


def _target(benchmark: Benchmark) -> str:
    """Where another process finds it."""
    with contextlib.suppress(OSError, TypeError):
        file = inspect.getfile(inspect.unwrap(benchmark.function))
        if os.path.isfile(file):
            return f"{os.path.abspath(file)}::{benchmark.name}"
    raise BenchError(
        f"benchmark {benchmark.name!r} is in no file, so other processes cannot load it",
        hint="write it into a .py file, or leave processes= out",
    )
