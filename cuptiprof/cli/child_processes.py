"""``run --profile-child-processes``: reaching the children of a script, and saying what became of each.

Children that are Python are met by a ``sitecustomize`` of ours, whose folder leads PYTHONPATH; whatever starts them (multiprocessing by spawn or
forkserver, torchrun, subprocess), they start a session of their own (``in_child``) and save it. A fork has no interpreter start, and
neither CUDA nor CUPTI works after it in a process that had them: such children are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

import msgspec

from cuptiprof.cli.destination import Destination, destination
from cuptiprof.cli.in_child import say_forked
from cuptiprof.cli.output import expand
from cuptiprof.cli.process_records import ENVIRONMENT, ChildPlan, ProcessRecord, read_records
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError
from cuptiprof.export.formats import format_of
from cuptiprof.io.run_folder import make_folder_of_runs
from cuptiprof.io.runs import open_run
from cuptiprof.text.addresses import absolute, shown_path

STARTUP = Path(__file__).with_name("startup")
_WAIT_RUNNING, _WAIT_SAVING = 1.0, 30.0  # seconds for children that are about to end
_WORTH_A_NOTE = 1.0  # seconds of CPU time of children that were not profiled
_FORKED = "neither CUDA nor CUPTI works after a fork: start what uses the GPU by spawn, and data loaders' workers miss nothing"


class ChildProcesses:
    """From entering to leaving the block, children of this process are profiled, too.

    Attributes:
        place: where the run of this process goes; None: nowhere, only reports are printed.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Makes the folder for the runs.

        Raises:
            CuptiprofError: children cannot be reached, or the place cannot be written.
        """
        if sys.flags.ignore_environment or sys.flags.no_site:
            raise CuptiprofError(
                "--profile-child-processes: this Python ignores the environment (-I, -E or -S), and so would its children",
                hint="start it without these options",
            )
        if arguments.replay_mode == "application":
            raise CuptiprofError(
                "--profile-child-processes and --replay-mode application do not go together",
                hint="count with --replay-mode kernel, or profile the main process only",
            )
        self._records = tempfile.mkdtemp(prefix="cuptiprof-children-")
        self._folder = ""
        try:
            output = self._output(arguments)
            self.place: Destination | None = None
            if arguments.output is not None:
                # RANK and the like are the children's: torchrun itself has none.
                own = re.sub(r"%q\{(\w+)\}", lambda m: m[0] if m[1] in os.environ else "main", output)
                self.place = destination(own, overwrite=arguments.force_overwrite, activities=arguments.activities)
        except BaseException:
            shutil.rmtree(self._records, ignore_errors=True)
            raise
        options = {k: v for k, v in vars(arguments).items() if k not in ("function", "parser")} | {
            "explain": False,
            "live": False,
            "metrics_port": re.sub("[0-9]+$", "0", arguments.metrics_port) if arguments.metrics_port else None,
        }
        self._plan = ChildPlan(self._records, output, options)
        self._before: dict[str, str | None] = {}

    def _output(self, arguments: argparse.Namespace) -> str:
        """What each process calls its run."""
        text: str | None = arguments.output
        if text is None:
            return os.path.join(self._records.replace("%", "%%"), "run-%p")
        if "%p" in text or "%q" in text:
            return absolute(text)
        if format_of(text) is not None:
            raise CuptiprofError(
                f"-o {shown_path(text)}: one file for several processes",
                hint="%p in the name stands for the number of each, %q{RANK} for its rank; or name a folder for their runs",
            )
        self._folder = absolute(expand(text))
        make_folder_of_runs(self._folder, overwrite=arguments.force_overwrite)
        return os.path.join(self._folder.replace("%", "%%"), "process-%p.cuptiprof")

    def __enter__(self) -> ChildProcesses:
        path = os.environ.get("PYTHONPATH")
        self._set(ENVIRONMENT, msgspec.json.encode(self._plan).decode())
        self._set("PYTHONPATH", os.pathsep.join([str(STARTUP), *([path] if path else [])]))
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self._forked)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()

    def _set(self, name: str, value: str) -> None:
        self._before[name] = os.environ.get(name)
        os.environ[name] = value

    def _forked(self) -> None:
        if self._before:
            self._before.clear()
            say_forked(self._records)

    def collect(self) -> list[ProcessRecord]:
        """What became of each child; waits a moment for those that are about to end."""
        began = time.monotonic()
        while True:
            records = read_records(self._records)
            states = {r.state for r in records if r.is_alive}
            waited = time.monotonic() - began
            if not ("saving" in states and waited < _WAIT_SAVING) and not (
                "running" in states and waited < _WAIT_RUNNING
            ):
                return records
            time.sleep(0.02)

    def forget(self) -> None:
        """The records, and runs that were made only to be printed."""
        shutil.rmtree(self._records, ignore_errors=True)

    def note(self, records: list[ProcessRecord]) -> str:
        """What is to be said of the children, in every report of the run of this process."""
        by_state: dict[str, list[ProcessRecord]] = {}
        for record in records:
            lost = record.state in ("running", "saving") and not record.is_alive
            by_state.setdefault("lost" if lost else record.state, []).append(record)
        where = f" into {shown_path(self._folder)}" if self._folder else ""
        parts = [
            f"{len(records)} child processes" if len(records) != 1 else "1 child process",
            *(f"{len(some)} profiled{where}" for some in [by_state.get("saved", [])] if some),
            *(f"{len(some)} used no GPU" for some in [by_state.get("empty", [])] if some),
            *(f"{len(some)} forked ({_FORKED})" for some in [by_state.get("forked", [])] if some),
        ]
        for state, what in (
            ("lost", "left no run (killed, or left by os._exit)"),
            ("failed", "not profiled"),
            ("running", "still running"),
            ("saving", "still saving"),
        ):
            if some := by_state.get(state, []):
                first = some[0].title + (f": {some[0].why}" if some[0].why else "")
                parts.append(f"{len(some)} {what}, {'such as ' if len(some) > 1 else ''}{' '.join(first.split())}")
        return "; ".join(parts) if records else "no child process was started"


def results_of(records: list[ProcessRecord]) -> list[Result]:
    """What children saved and can be read, in the order of their starts."""
    found = []
    for record in records:
        if record.state == "saved":
            try:
                found.append(open_run(record.path))
            except CuptiprofError as e:
                record.state, record.why = "failed", json.dumps(str(e))
    return found


def unprofiled_children(before: float) -> str:
    """For a run without the option: a note if children that are over did work. `before`: ``children_seconds()`` at its start."""
    worked = children_seconds() - before
    if worked < _WORTH_A_NOTE:
        return ""
    return f"child processes ran for {worked:.1f} s of CPU time: nothing of theirs is in here (--profile-child-processes profiles them)"


def children_seconds() -> float:
    """CPU time of children that this process has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
