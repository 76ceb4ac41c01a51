"""Run a program in a session, and say where the result differs from what the program noted."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.device.devices import SimulatedDevice
from torch_programs.truth import Launch, NotedSimulation, Truth

_TABLES = ("kernels", "memcpys", "memsets")


class _Device(SimulatedDevice):
    """The simulated device, without operators of the CPU on it."""

    def started(self) -> None:
        pass

    def stopping(self) -> None:
        pass


def run(simulation: NotedSimulation, program: Callable[[Truth], None], **session: Any) -> tuple[Result, Truth]:
    """One program in a session of its own."""
    truth = Truth()
    torch.manual_seed(1)
    with cuptiprof.profile(device=_Device(), **session) as prof:
        truth.session, simulation.truth = prof, truth
        try:
            program(truth)
        finally:
            simulation.truth = None
    return prof.result(), truth


def found(result: Result) -> dict[int, list[dict[str, Any]]]:
    """The launches of each thread, in their order."""
    threads: dict[int, list[dict[str, Any]]] = {}
    for table in _TABLES:
        rows = getattr(result, table)
        columns = {name: rows[name] for name in COLUMNS}
        for i in range(len(rows)):
            row = {name: values[i] for name, values in columns.items()}
            row |= {"table": table, "correlation_id": int(rows["correlation_id"][i])}
            threads.setdefault(int(rows["thread"][i]), []).append(row)
    for rows in threads.values():
        rows.sort(key=lambda row: row["correlation_id"])
    return threads


COLUMNS: dict[str, Callable[[Launch], Any]] = {
    "region": lambda launch: launch.region,
    "step": lambda launch: launch.step,
}
"""Column of the result -> what the truth says of it."""


def differences(result: Result, truth: Truth) -> list[str]:
    """Each launch of which a column says something else than the program did; and what does not add up."""
    noted: dict[int, list[Launch]] = {}
    for launch in truth.finished():
        noted.setdefault(launch.thread, []).append(launch)
    said: list[str] = []
    threads = found(result)
    for thread in sorted({*noted, *threads}):
        rows, launches = threads.get(thread, []), noted.get(thread, [])
        if [row["table"] for row in rows] != [launch.table for launch in launches]:
            said.append(f"thread {thread}: {len(rows)} rows of {len(launches)} launches")
            continue
        for row, launch in zip(rows, launches, strict=True):
            wrong = {name: row[name] for name, of in COLUMNS.items() if row[name] != of(launch)}
            if wrong:
                said.append(f"{launch}: {wrong}")
    for name, count in Counter({k: v for k, v in result.losses.items() if v}).items():
        said.append(f"losses: {name} {count}")
    return said


def lies_found(result: Result, truth: Truth) -> list[str]:
    """The lies that :func:`differences` does not find: one launch that is another's in one column, and one that is missing."""
    launches = truth.rows
    missed: list[str] = []
    for column in COLUMNS:
        lie = dataclasses.replace(launches[-1], **{column: _OTHER[type(getattr(launches[-1], column))]})
        truth.rows = [*launches[:-1], lie]
        said = differences(result, truth)
        if len(said) != 1 or repr(column) not in said[0]:
            missed.append(f"{column}: {said}")
    truth.rows = launches[1:]
    if not any("launches" in line for line in differences(result, truth)):
        missed.append("a launch less")
    truth.rows = launches
    return missed + differences(result, truth)


_OTHER: dict[type, Any] = {str: "another", int: 77}
