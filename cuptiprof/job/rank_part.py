"""The part of a rank's run that goes into a picture with other ranks: some steps, by the clock of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.training_steps.step_spans import host_steps
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table, schema
from cuptiprof.errors import ResultError
from cuptiprof.job.clocks import RankClock

_SLICES = ("regions", "operators", "markers", "api_calls", "collectives", "synchronizations")
_WORK = ("kernels", "memcpys", "memsets", "graph_launches")
_REST = ("contexts", "devices", "stacks", "streams")


class StepRange(NamedTuple):
    """The first and the last step, by the numbers in their names (``ProfilerStep#3``)."""

    first: int
    last: int


def part_of_rank(result: Result, clock: RankClock | None, steps: StepRange | None) -> Result:
    """What the host began in the steps, and the GPU work that was launched in them; of counters and readings nothing.

    Args:
        clock: that moves all times to the reference's; None: they stay.
        steps: None: all that there is.

    Raises:
        ResultError: the run has no such steps.
    """
    tables = {name: result.tables[name] for name in (*_SLICES, *_WORK, *_REST)}
    tables |= {name: tables[name].timed() for name in _WORK}
    if steps is not None:
        tables |= _in_steps(result, tables, steps)
    if clock is not None:
        tables = {name: _moved(table, clock) for name, table in tables.items()}
    configs = {"launch_configs": result.tables["launch_configs"]}
    return Result({**tables, **configs}, result.metadata, dict(result.losses))


def _in_steps(result: Result, tables: dict[str, Table], wanted: StepRange) -> dict[str, Table]:
    marked = host_steps(result)
    numbers = np.array([int(name) if name.isdecimal() and len(name) < 19 else -1 for name in marked.name], np.int64)
    mine = np.flatnonzero((numbers >= wanted.first) & (numbers <= wanted.last))
    if not len(mine):
        known = numbers[numbers >= 0]
        said = f"its steps are {known.min():,} to {known.max():,}" if len(known) else "it marked no steps"
        asked = f"{wanted.first:,} to {wanted.last:,}" if wanted.last > wanted.first else f"{wanted.first:,}"
        raise ResultError(f"rank {result.metadata.get('rank', 0)} has no step {asked}", hint=said)
    begin, end = int(marked.start[mine].min()), int(marked.end[mine].max())

    def during(table: Table) -> npt.NDArray[np.bool_]:
        inside: npt.NDArray[np.bool_] = (table["start"] >= begin) & (table["start"] < end)
        return inside

    found = {name: tables[name].where(during(tables[name])) for name in _SLICES}
    for name in _WORK:
        table = tables[name]
        if "step" in table.column_names and (table["step"] > 0).any():
            # Numbers of steps count from 1 in the column, by which work is of the step that launched it.
            step = table["step"].astype(np.int64) - 1
            found[name] = table.where((step >= wanted.first) & (step <= wanted.last))
        else:
            found[name] = table.where(during(table))
    return found


def _moved(table: Table, clock: RankClock) -> Table:
    """With all times by the other clock; 0 is no time."""
    for column in schema()[table.name].values():
        if column.unit == "ns" and column.dtype == "int64":
            table = table.with_column(column.name, _times(table[column.name], clock))
    return table


def _times(times: Array, clock: RankClock) -> Callable[[Table], Array]:
    return lambda _: np.where(times != 0, clock.moved(times), 0)
