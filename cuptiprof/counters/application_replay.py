"""Counters of several passes by running a whole program again: once for each group that one pass can read.

Nothing is saved, restored or replayed inside a run, but the program must do the same work every time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuptiprof import _core
from cuptiprof.counters.application_merge import merge_application_runs
from cuptiprof.counters.plan import resolve_request
from cuptiprof.counters.request import CounterRequest
from cuptiprof.data.result import Result
from cuptiprof.device.plan_cache import CachedPlanner
from cuptiprof.errors import CuptiprofError, MetricError
from cuptiprof.io.runs import open_run

RunOnce = Callable[[int, tuple[str, ...], Path], int]
"""Runs the program: (number of the run, names to count, where its profile goes) -> exit status."""


@dataclass(frozen=True)
class ApplicationPlan:
    """What was asked for, and the perfworks names to read in each run of the script.

    Attributes:
        groups: one a run of the script.
        several: names that no single pass can read (a throughput is the maximum of many counters): they make up the last
            group, and the launches of that run are replayed.
        dropped: what a set or section has that no counter gives, with why.
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


def plan_runs(request: CounterRequest, library: _core.CuptiLibrary) -> ApplicationPlan:
    """Names -> metrics -> groups that one pass can read, by the catalogue and NVIDIA's planner.

    Raises:
        MetricError: nothing was asked for, or a name that the chip does not have.
    """
    chip = _core.chip_name(library)
    planner = CachedPlanner(library, chip)
    metrics, dropped = resolve_request(request, planner, chip, sampling=False)
    inputs = list(dict.fromkeys(name for metric in metrics for name in metric.inputs))
    if not inputs:
        raise MetricError("nothing is left to count", hint="; ".join(f"{k}: {v}" for k, v in dropped.items()))
    several = tuple(name for name in inputs if sum(group.passes for group in planner.plan([name])) > 1)
    single = [name for name in inputs if name not in several]
    groups = tuple(tuple(group.metrics) for group in planner.one_pass_groups(single)) if single else ()
    return ApplicationPlan(tuple(metrics), groups + ((several,) if several else ()), several, dropped)


def run_plan(plan: ApplicationPlan, run_once: RunOnce, match_by: str) -> tuple[Result, int]:
    """Run the program once a group; the merged result, and the exit status of the first run.

    Args:
        match_by: what tells the launches of one run from each other; see :func:`merge_application_runs`.

    Raises:
        CuptiprofError: a run left nothing behind.
    """
    with tempfile.TemporaryDirectory(prefix="cuptiprof-") as folder:
        runs: list[Result] = []
        notes = plan.notes()
        status = 0
        for i, group in enumerate(plan.groups):
            path = Path(folder) / f"pass-{i}.cuptiprof"
            code = run_once(i, group, path)
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
        result = merge_application_runs(runs, match_by=match_by, metrics=plan.metrics)
        result.metadata["counters"]["notes"] += notes
        result.metadata["counters"]["dropped"] = plan.dropped
        return result, status
