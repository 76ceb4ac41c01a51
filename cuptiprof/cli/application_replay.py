"""``run --replay-mode application``: the script runs once for each group of counters that can be read in one pass.

Nothing is saved, restored or replayed inside a run, but the script must do the same work every time. Only the first run
has the script's standard output; the later ones write theirs to nowhere, so that a pipe sees what one run would say.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuptiprof import _core
from cuptiprof.cli.metric_arguments import counter_options
from cuptiprof.counters.application_merge import merge_application_runs
from cuptiprof.counters.plan import resolve_request
from cuptiprof.counters.request import CounterRequest
from cuptiprof.data.result import Result
from cuptiprof.device.devices import open_device
from cuptiprof.device.planning import plan_cache_dir
from cuptiprof.errors import CuptiprofError, MetricError
from cuptiprof.io.runs import open_run

# Options of `run` that the runs of the script need too: attribute -> flag. Filters select the same launches every time.
_VALUES = {
    "device": "--device",
    "activities": "--activities",
    "profile_from_start": "--profile-from-start",
    "timeout": "--timeout",
    "budget": "--budget",
    "keep": "--keep",
    "kernel_name_base": "--kernel-name-base",
    "launch_skip": "--launch-skip",
    "launch_count": "--launch-count",
    "launch_skip_before_match": "--launch-skip-before-match",
    "filter_mode": "--filter-mode",
    "devices": "--devices",
    "cache_control": "--cache-control",
    "clock_control": "--clock-control",
}
_LISTS = {
    "kernels": "--kernels",
    "kernel_name": "--kernel-name",
    "kernel_id": "--kernel-id",
    "nvtx_include": "--nvtx-include",
    "nvtx_exclude": "--nvtx-exclude",
}


@dataclass(frozen=True)
class ApplicationPlan:
    """What was asked for, and the perfworks names to read in each run of the script.

    ``several`` are names that no single pass can read (a throughput is the maximum of many counters): they make up the
    last group, and the launches of that run are replayed. ``dropped`` is what a set or section has that no counter gives.
    """

    metrics: tuple[Any, ...]
    groups: tuple[tuple[str, ...], ...]
    several: tuple[str, ...] = ()
    dropped: dict[str, str] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """What the result should say."""
        if not self.several:
            return []
        return [f"launches of run {len(self.groups)} were replayed: {', '.join(self.several)} take several passes each"]

    def text(self) -> str:
        """What ``--explain`` says."""
        lines = [f"Application replay: the script runs {len(self.groups)} times."]
        lines += [f"  {metric.name} = {metric.expression}" for metric in self.metrics]
        lines += [f"  run {i}: {', '.join(group)}" for i, group in enumerate(self.groups, 1)]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes()),
                          *(f"  left out: {name}: {why}" for name, why in self.dropped.items())]) + "\n"  # fmt: skip


def plan_runs(arguments: argparse.Namespace) -> ApplicationPlan:
    """Names -> metrics -> groups that one pass can read, by the catalogue and NVIDIA's planner.

    Raises:
        MetricError: nothing was asked for, or a name that the chip does not have.
        DeviceError: there is no such device here.
    """
    options = counter_options(arguments)
    if not options:
        raise MetricError(
            "--replay-mode application without metrics", hint="name some: --metrics ipc,achieved_occupancy"
        )
    request = CounterRequest(
        tuple(options.get("metrics", ())),
        tuple(options.get("events", ())),
        options.get("set"),
        (section,) if isinstance(section := options.get("section", ()), str) else tuple(section),
    )
    library = open_device(arguments.device).library
    chip = _core.chip_name(library)
    planner = _core.MetricPlanner(library, chip, False, None, plan_cache_dir())
    metrics, dropped = resolve_request(request, planner, chip, False)
    inputs = list(dict.fromkeys(name for metric in metrics for name in metric.inputs))
    if not inputs:
        raise MetricError("nothing is left to count", hint="; ".join(f"{k}: {v}" for k, v in dropped.items()))
    several = tuple(name for name in inputs if sum(group.passes for group in planner.plan([name])) > 1)
    single = [name for name in inputs if name not in several]
    groups = tuple(tuple(group.metrics) for group in planner.one_pass_groups(single)) if single else ()
    return ApplicationPlan(tuple(metrics), groups + ((several,) if several else ()), several, dropped)


def replay(arguments: argparse.Namespace, plan: ApplicationPlan) -> tuple[Result, int]:
    """Run the script once a group; the merged result, and the script's exit status in its first run.

    Raises:
        CuptiprofError: a run left nothing behind.
    """
    with tempfile.TemporaryDirectory(prefix="cuptiprof-") as folder:
        runs: list[Result] = []
        notes = plan.notes()
        status = 0
        for i, group in enumerate(plan.groups):
            path = Path(folder) / f"pass-{i}.cuptiprof"
            code = _run(child_command(arguments, group, path), quiet=i > 0)
            if i == 0:
                status = code
            elif code != status:
                notes.append(f"run {i + 1} of the program ended with status {code}, run 1 with {status}")
            if not path.exists():
                raise CuptiprofError(
                    f"run {i + 1} of {len(plan.groups)} left no profile (exit status {code})",
                    hint="its message is above; application replay needs a script that can be run again",
                )
            runs.append(open_run(path))
        result = merge_application_runs(runs, match_by=arguments.app_replay_match, metrics=plan.metrics)
        result.metadata["counters"]["notes"] += notes
        result.metadata["counters"]["dropped"] = plan.dropped
        return result, status


def child_command(arguments: argparse.Namespace, group: Sequence[str], output: Path) -> list[str]:
    """The command of one run: the same script under ``cuptiprof run``, with one group of counters."""
    command = [sys.executable, "-m", "cuptiprof", "run", "--quiet", "--output", str(output).replace("%", "%%")]
    command += ["--replay-mode", "kernel", "--metrics", ",".join(group)]
    for attribute, flag in _VALUES.items():
        value = getattr(arguments, attribute)
        if value is not None:
            command += [f"{flag}={value}"]
    for attribute, flag in _LISTS.items():
        for value in getattr(arguments, attribute) or []:
            command += [f"{flag}={value}"]
    return [*command, *(["-m"] if arguments.module else []), arguments.script, *arguments.args]


def _run(command: list[str], *, quiet: bool) -> int:
    """Exit status as a shell gives it. An interrupt goes to the script too; what it leaves behind is waited for."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None, env=dict(os.environ)) as child:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
    return code if code >= 0 else 128 - code
