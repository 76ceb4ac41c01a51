"""Which points of an interrupted sweep need not be measured again, and why the others do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuptiprof.bench.results.points import params_key
from cuptiprof.bench.results.row import Row, same_arguments
from cuptiprof.bench.results.store import Results
from cuptiprof.bench.sweep.running import Task, in_groups

SURROUNDINGS = (
    "chip",
    "simulated",
    "driver_version",
    "cupti_version",
    "torch_version",
    "triton_version",
    "host",
    "commit",
)
"""Results of two of these do not belong into one sweep."""


@dataclass(frozen=True)
class Plan:
    """What is left of a sweep.

    Attributes:
        done: rows that stay as they are.
        left: tasks to measure.
        reasons: of those tasks that have a row: why it does not stand, with how many it concerns.
    """

    done: tuple[Row, ...]
    left: tuple[Task, ...]
    reasons: Mapping[str, int]

    def lines(self) -> list[str]:
        """What to tell the user."""
        total = len(self.done) + len(self.left)
        out = [f"{len(self.done)} of {total} points are measured already"]
        return out + [f"{count} measured again: {reason}" for reason, count in self.reasons.items()]


def plan(tasks: Sequence[Task], results: Results, environment: Mapping[str, Any], *, timeout: float = 0.0) -> Plan:
    """Compare `tasks` with the rows of a results file.

    A row stands if its benchmark, parameters, arguments, the benchmark's file and the surroundings are the same. Rows of failures
    are tried again, those of a timeout only with a longer limit.
    """
    old = {row.key: row for row in results.rows}
    done: list[Row] = []
    left: list[Task] = []
    reasons: Counter[str] = Counter()
    for task in tasks:
        row = old.get(_key(task))
        why = _why_again(task, row, results.environment, environment, timeout) if row is not None else None
        if row is not None and not why:
            done.append(row)
            continue
        left.append(task)
        if why:
            reasons[why] += 1
    # What is compared was measured in turn: where one is missing, the others are measured with it again.
    missing = {_key(t) for t in left}
    again: set[tuple[str, str]] = set()
    for group in in_groups(tasks):
        keys = {_key(t) for t in group}
        if keys & missing:
            again |= keys - missing
    if again:
        done = [row for row in done if row.key not in again]
        missing |= again
        left = [t for t in tasks if _key(t) in missing]
        reasons["others that they are compared with were missing"] = len(again)
    return Plan(tuple(done), tuple(left), dict(reasons))


def _key(task: Task) -> tuple[str, str]:
    return task.benchmark.name, params_key(task.point.params)


def _why_again(task: Task, row: Row, then: Mapping[str, Any], now: Mapping[str, Any], timeout: float) -> str:
    """Why the row of a task does not stand; empty if it does."""
    if not row.source or row.source != task.benchmark.source:
        return "the benchmark's file has changed since"
    arguments = task.arguments()
    if not same_arguments(row.arguments, arguments):
        names = [n for n in {**row.arguments, **arguments} if row.arguments.get(n) != arguments.get(n)]
        return f"other arguments ({', '.join(sorted(names))})"
    before = {**then, **(row.measurement.environment if row.measurement is not None else {})}
    for name in SURROUNDINGS:
        if before.get(name) != now.get(name):
            return f"another {name.replace('_', ' ')}: {before.get(name)} then, {now.get(name)} now"
    if row.failure is None or not row.failed:
        return ""
    if row.failure.kind != "timeout":
        return "they had failed"
    longer = timeout == 0 or timeout > row.failure.seconds
    return "they had run out of time, and may take longer now" if longer else ""
