"""The tables ``allocator_events`` and ``allocator_blocks`` of a cycle, from what torch's allocator told at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.operator_work.operator_places import KNOWN, operator_paths, operator_places, region_places
from cuptiprof.data.tables import Strings, Table
from cuptiprof.io.allocator_rows import FrameTree, as_arrays, snapshot_rows
from cuptiprof.session.allocator_history import THREAD_MARK, TakenHistory
from cuptiprof.session.steps import Steps
from cuptiprof.session.unix_times import run_times

Int64 = npt.NDArray[np.int64]
_MICROSECOND = 1000


def add_allocator(
    taken: TakenHistory,
    tables: dict[str, Table],
    metadata: dict[str, Any],
    losses: dict[str, int],
    steps: Steps | None,
    is_user: Callable[[str], bool],
) -> str:
    """Put the rows into `tables`, what goes with them into `metadata` and `losses`. Returns a note for the user, or nothing."""
    metadata["allocator"] = {**taken.facts, "stats": {str(device): stats for device, stats in taken.stats.items()}}
    if taken.snapshot is None:
        return f"no events of the allocator: {taken.note}"
    metadata["allocator"]["settings"] = _plain(taken.snapshot.get("allocator_settings"))
    strings = tables["stacks"].strings
    stacks = tables["stacks"]
    frames = FrameTree(strings, is_user, first=int(stacks["id"].max()) + 1 if len(stacks) else 1)
    rows = snapshot_rows(taken.snapshot, frames, since_us=taken.since_ns // _MICROSECOND)
    unix = np.asarray(rows.events.pop("timestamp"), np.int64)
    before_the_end = unix <= taken.until_ns
    time, error = run_times(unix[before_the_end], taken.clocks)
    events: dict[str, Any] = {name: column[before_the_end] for name, column in as_arrays(rows.events).items()}
    events["timestamp"] = time
    if frames.rows["id"]:
        more = Table.from_columns("stacks", frames.rows, strings)
        tables["stacks"] = _joined(stacks, more)
    events |= _places(tables, time, error, events["user_metadata"], strings, taken.marked_thread)
    if steps is not None:
        events["step"] = steps.numbers_at(time)
    tables["allocator_events"] = Table.from_columns("allocator_events", events, strings, rows=len(time))
    tables["allocator_blocks"] = Table.from_columns("allocator_blocks", as_arrays(rows.blocks), strings)
    losses["allocator_overwritten"] += taken.overwritten
    losses["unknown_records"] += rows.unknown
    if error is None:
        return (
            "the system's clock was set during the session: what the allocator did is joined to no operator and region"
        )
    return taken.note


def _plain(settings: Any) -> dict[str, Any]:
    """What of the settings a saved run can hold."""
    if not isinstance(settings, dict):
        return {}
    return {str(k): _plain(v) if isinstance(v, dict) else v for k, v in settings.items()
            if isinstance(v, (bool, int, float, str, dict))}  # fmt: skip


def _joined(first: Table, second: Table) -> Table:
    columns = {c: np.concatenate([first.codes(c), second.codes(c)]) for c in first.column_names}
    return Table(first.name, columns, first.strings)


def _places(
    tables: dict[str, Table],
    time: Int64,
    error: int | None,
    marks: npt.NDArray[np.uint64],
    strings: Strings,
    marked_thread: int,
) -> dict[str, Any]:
    """Columns that say where: of the operator that was surely open, else of the thread's region."""
    threads, metadata = _marked_threads(marks, strings)
    out: dict[str, Any] = {"user_metadata": metadata, "thread": threads}
    if error is None or not len(time):
        return out
    begin, end = time - error, time + _MICROSECOND + error
    regions, operators = tables["regions"], tables["operators"]
    row = region_places(regions, begin, end, threads)
    for column, of in (("region", "path"), ("region_instance", "instance")):
        out[column] = np.where(row >= 0, regions.codes(of)[row], 0) if len(regions) else np.zeros(len(time), np.uint32)
    if not len(operators):
        return out
    known_thread = 0 if metadata.any() else marked_thread  # it may have had other marks
    found = operator_places(operators, begin, end, threads, known_thread=known_thread)
    known = found.known == KNOWN
    row = found.row[known]
    out["operator_known"] = found.known
    for column, of in (
        ("operator_instance", "instance"), ("thread", "thread"), ("region", "region"), ("region_instance", "region_instance"),
        ("module", "module"), ("backward", "backward"),
    ):  # fmt: skip
        values = np.array(out.get(column, np.zeros(len(time), np.uint32)))
        values[known] = operators.codes(of)[row]
        out[column] = values
    paths = operator_paths(operators)
    codes = {i: strings.code(paths[i]) for i in np.unique(row).tolist()}
    path = np.zeros(len(time), np.uint32)
    path[known] = [codes[i] for i in row.tolist()]
    out["operator"] = path
    return out


def _marked_threads(
    marks: npt.NDArray[np.uint64], strings: Strings
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """System thread IDs out of our marks (0: none), and the marks of others."""
    threads, others = np.zeros(len(marks), np.uint32), marks.copy()
    for code in np.unique(marks).tolist():
        name, mark, thread = strings[code].partition(THREAD_MARK)
        if mark and not name and thread.isdecimal():
            threads[marks == code] = int(thread)
            others[marks == code] = 0
    return threads, others
