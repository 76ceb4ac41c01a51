"""``run --replay-mode application``: the script runs once for each group of counters that can be read in one pass.

Only the first run has the script's standard output; the later ones write theirs to nowhere, so that a pipe sees what one
run would say.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cuptiprof.cli.metric_arguments import counter_options
from cuptiprof.counters.application_replay import ApplicationPlan, plan_runs, run_plan
from cuptiprof.counters.request import CounterRequest
from cuptiprof.data.result import Result
from cuptiprof.device.devices import open_device
from cuptiprof.errors import MetricError

# Options of `run` that the runs of the script need too: attribute -> flag. Filters select the same launches every time.
_VALUES = {
    "device": "--device",
    "activities": "--activities",
    "profile_from_start": "--profile-from-start",
    "system_profiling": "--system-profiling",
    "timeout": "--timeout",
    "sources": "--sources",
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
    "line_include": "--line-include",
    "module_include": "--module-include",
    "nvtx_exclude": "--nvtx-exclude",
}


def plan_script_runs(arguments: argparse.Namespace) -> ApplicationPlan:
    """What is counted in each run of the script.

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
    return plan_runs(request, open_device(arguments.device).library)


def run_script_again(arguments: argparse.Namespace, plan: ApplicationPlan) -> tuple[Result, int]:
    """The merged result of all runs, and the script's exit status in its first one.

    Raises:
        CuptiprofError: a run left nothing behind.
    """

    def run_once(number: int, group: Sequence[str], output: Path) -> int:
        return _run(child_command(arguments, group, output), quiet=number > 0)

    return run_plan(plan, run_once, arguments.app_replay_match)


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
