"""Rounds in turn: in each, every workload under every condition: before, during, after.

A loop of its own and not the harness's: the same loop must time steps in a process that never imports cuptiprof (``nothing``), a
condition that fails leaves the others standing, and each round begins with another condition.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.overhead.conditions import Condition, Outcome, no_region
from benchmarks.overhead.workloads import Region, Workload

MIN_STEPS, MAX_STEPS = 4, 200
GPU_STEPS = 3


@dataclass
class Cell:
    """One workload under one condition. Lists of rounds; times in ns a step."""

    before: list[list[float]] = field(default_factory=list)
    during: list[list[float]] = field(default_factory=list)
    after: list[list[float]] = field(default_factory=list)
    gpu: list[list[float]] = field(default_factory=list)
    """GPU time a step by CUDA events, while the condition holds"""
    memory: list[int] = field(default_factory=list)
    """growth of the process's resident memory from before the start to before the stop, bytes"""
    outcomes: list[Outcome] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    """the numbers of the rounds above; one that failed is missing"""
    errors: list[str] = field(default_factory=list)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def timed_steps(workload: Workload, region: Region, steps: int) -> list[float]:
    """So many steps after one that is not timed; ns each."""
    workload.step(region)
    out = []
    for _ in range(steps):
        start = time.perf_counter_ns()
        workload.step(region)
        out.append(float(time.perf_counter_ns() - start))
    return out


def steps_for(workload: Workload, phase_s: float) -> int:
    """How many steps fill a phase."""
    workload.prepare()
    took = statistics.median(timed_steps(workload, no_region, 3))
    return max(MIN_STEPS, min(MAX_STEPS, int(phase_s * 1e9 / took)))


def measure(cell: Cell, workload: Workload, condition: Condition, steps: int, number: int) -> None:
    """One round of one cell; an error is kept in the cell and the condition is left."""
    gc.collect()
    try:
        workload.prepare()
        before = timed_steps(workload, no_region, steps)
        resident = resident_bytes()
        region = condition.start()
        try:
            workload.prepare()
            during = timed_steps(workload, region, steps)
            gpu = [workload.gpu_ns(region) for _ in range(GPU_STEPS)] if workload.gpu_ns else []
            grown = resident_bytes() - resident
        finally:
            outcome = condition.stop()
        after = timed_steps(workload, no_region, steps)
    except Exception as e:
        cell.errors.append(f"{type(e).__name__}: {e}")
        return
    cell.before.append(before)
    cell.during.append(during)
    cell.after.append(after)
    cell.gpu.append(gpu)
    cell.memory.append(grown)
    cell.outcomes.append(outcome)
    cell.rounds.append(number)


Cells = dict[tuple[str, str], Cell]


def orders(names: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Another order each round, so that no condition always follows the same one."""
    for i in range(rounds):
        shift = i // 2 % len(names)
        turned = [*names[shift:], *names[:shift]]
        yield turned if i % 2 == 0 else turned[::-1]


def run(
    workloads: Sequence[Workload],
    conditions: Sequence[Condition],
    rounds: int,
    phase_s: float,
    deadline: float,
    elsewhere: Callable[[Workload, int], list[float]] | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> Cells:
    """All cells. No round is begun after `deadline` (time.monotonic), but there is always one.

    `elsewhere(workload, steps)`: times of steps in a process that never imported us; the condition "nothing".
    """
    cells: Cells = {(w.name, c.name): Cell() for w in workloads for c in conditions if not c.reason}
    by_name = {c.name: c for c in conditions if not c.reason}
    if elsewhere is not None:
        cells |= {(w.name, "nothing"): Cell() for w in workloads}
    steps = {w.name: steps_for(w, phase_s) for w in workloads}
    for number, order in enumerate(orders(list(by_name), rounds)):
        if number > 0 and time.monotonic() > deadline:
            log(f"out of time after {number} rounds")
            break
        for workload in workloads:
            if elsewhere is not None:
                cell = cells[workload.name, "nothing"]
                try:
                    cell.during.append(elsewhere(workload, steps[workload.name]))
                    cell.rounds.append(number)
                except Exception as e:
                    cell.errors.append(f"{type(e).__name__}: {e}")
            for name in order:
                measure(cells[workload.name, name], workload, by_name[name], steps[workload.name], number)
        log(f"round {number + 1} of {rounds} done")
    return cells
