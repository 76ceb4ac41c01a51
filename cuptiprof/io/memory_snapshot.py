"""Snapshots of PyTorch's caching allocator as files: the pickle that ``torch.cuda.memory._dump_snapshot()`` writes and that
https://pytorch.org/memory_viz opens. Written from a result; read from anywhere, without running anything that is in it."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.analysis.operator_places import KNOWN
from cuptiprof.data.enums import ALLOCATOR_ACTIONS, BLOCK_STATES
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError
from cuptiprof.io.allocator_rows import OOM, FrameTree, as_arrays, snapshot_rows

_PROTOCOL = 4
_MOST_BYTES = 4 << 30
_MOST_DEVICES = 1024
_Frames = list[dict[str, Any]]


def write_snapshot(result: Result, path: Path, compress: bool = False, progress: Progress | None = None) -> None:
    """The tables ``allocator_events`` and ``allocator_blocks`` as torch's snapshot; regions and steps are its annotations, operators the
    innermost frames (of no file), as torch has them where it makes a snapshot of a profile.

    Raises:
        ResultError: the run has no history of the allocator.
    """
    del compress, progress
    if not len(result.allocator_events) and not len(result.allocator_blocks):
        raise ResultError(
            "this run has no history of PyTorch's caching allocator", hint='profile(activities=["allocator", ...])'
        )
    path.write_bytes(pickle.dumps(_snapshot(result), protocol=_PROTOCOL))


def _snapshot(result: Result) -> dict[str, Any]:
    frames = _Stacks(result)
    events, blocks = result.allocator_events, result.allocator_blocks
    last = max(int(table["device"].max(initial=0)) for table in (events, blocks))
    if last >= _MOST_DEVICES:
        raise ResultError(f"no machine has a device {last}")
    traces: list[list[dict[str, Any]]] = [[] for _ in range(last + 1)]
    for row in events.rows():
        traces[row["device"]].append(_entry(row, _unix_us(result, row["timestamp"]), frames))
    settings = (result.metadata.get("allocator") or {}).get("settings")
    return {
        "segments": list(_segments(blocks, frames)),
        "device_traces": traces,
        "allocator_settings": settings if isinstance(settings, dict) else {},
        "external_annotations": list(_annotations(result)),
    }


def _unix_us(result: Result, time: int) -> int:
    return result.clock_to_unix(time) // 1000


def _entry(row: dict[str, Any], time_us: int, frames: _Stacks) -> dict[str, Any]:
    is_oom = row["action"] == OOM
    places = [f"{key} {row[key]}" for key in ("region", "module") if row[key]]
    return {
        "action": ALLOCATOR_ACTIONS[row["action"]],
        **({"device_free": row["device_free"]} if is_oom else {"addr": row["address"]}),
        "size": row["bytes"],
        "stream": row["stream"],
        "time_us": time_us,
        "compile_context": row["compile_context"] or "N/A",
        "user_metadata": row["user_metadata"] or ", ".join(places),
        "pool_id": (0, row["pool"]),
        "frames": frames.of_event(row["stack"], row["operator"] if row["operator_known"] == KNOWN else ""),
    }


class _Stacks:
    """Lists of frames as torch has them, each once."""

    def __init__(self, result: Result) -> None:
        self._stacks = result.python_stacks()
        self._known: dict[tuple[int, str], _Frames] = {}

    def of_event(self, stack: int, operators: str) -> _Frames:
        found = self._known.get((stack, operators))
        if found is None:
            names = operators.replace("\\/", "\0").split("/") if operators else []
            found = [{"name": name.replace("\0", "/"), "filename": "none", "line": 0} for name in reversed(names)]
            found += [{"name": f.function, "filename": f.file, "line": f.line} for f in self._stacks.frames(stack)]
            self._known[stack, operators] = found
        return found


def _segments(blocks: Table, frames: _Stacks) -> Iterator[dict[str, Any]]:
    segment: dict[str, Any] | None = None
    for row in blocks.rows():
        if segment is None or (row["device"], row["segment"]) != (segment["device"], segment["address"]):
            if segment is not None:
                yield segment
            segment = {
                "device": row["device"],
                "address": row["segment"],
                "total_size": row["segment_bytes"],
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "stream": row["stream"],
                "segment_type": "small" if row["is_small"] else "large",
                "segment_pool_id": (row["pool_kind"], row["pool"]),
                "is_expandable": bool(row["is_expandable"]),
                "frames": [],
                "blocks": [],
            }
        state = BLOCK_STATES[row["state"]]
        if state != "inactive":
            segment["active_size"] += row["bytes"]
            segment["requested_size"] += row["requested"]
            segment["allocated_size"] += row["bytes"] if state == "active_allocated" else 0
        segment["blocks"].append(
            {
                "address": row["address"],
                "size": row["bytes"],
                "requested_size": row["requested"],
                "state": state,
                "frames": frames.of_event(row["stack"], ""),
            }
        )
    if segment is not None:
        yield segment


def _annotations(result: Result) -> Iterator[dict[str, Any]]:
    """Entries and exits of regions and steps, in order of time."""
    spans = [(row["start"], row["end"], row["path"]) for row in result.regions.rows()]
    spans += [(row["start"], row["end"], row["name"]) for row in result.markers.rows() if row["category"] == "step"]
    marks = [(start, "START", name) for start, _, name in spans] + [(end, "END", name) for _, end, name in spans]
    for time, stage, name in sorted(marks, key=lambda mark: mark[0]):
        yield {"name": name, "stage": stage, "device": 0, "time_us": _unix_us(result, time)}


def looks_like_snapshot(path: Path) -> bool:
    """By its first byte: a pickle."""
    try:
        with path.open("rb") as f:
            return f.read(1) == b"\x80"
    except OSError:
        return False


def import_snapshot(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a snapshot that torch wrote: its history is in ``allocator_events``, its segments are in ``allocator_blocks``.

    Times are Unix times. Nobody said in which region or operator anything happened.

    Raises:
        ResultError: unreadable, truncated, damaged, not such a snapshot, or one that holds more than values.
    """
    file = Path(path)
    snapshot = read_snapshot(file)
    if progress is not None:
        progress(1, 2)
    strings = Strings()
    frames = FrameTree(strings, lambda name: not name.startswith("<") and "-packages" not in name)
    _refuse_too_many(snapshot, file)
    rows = snapshot_rows(snapshot, frames)
    tables = {
        "allocator_events": Table.from_columns("allocator_events", as_arrays(rows.events), strings),
        "allocator_blocks": Table.from_columns("allocator_blocks", as_arrays(rows.blocks), strings),
        "stacks": Table.from_columns("stacks", frames.rows, strings),
    }
    times = np.asarray(rows.events["timestamp"], np.int64)
    span = [int(times.min()), int(times.max())] if len(times) else [0, 0]
    metadata = {
        "format": 1,
        "device": f"import:{file.name}",
        "simulated": False,
        "origin": {"file": file.name},
        "start_time_ns": span[0],
        "stop_time_ns": span[1],
        "clock_pairs": [[span[0], span[0]]],
        "allocator": {},
    }
    return Result(tables, metadata, {"unknown_records": rows.unknown})


_VALUES = frozenset({
    "PROTO", "FRAME", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "SETITEM",
    "SETITEMS", "APPEND", "APPENDS", "LIST", "DICT", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
    "SHORT_BINUNICODE", "BINUNICODE", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE",
})  # fmt: skip
"""Pickle's instructions that make dicts, lists, tuples, numbers and text, and nothing else."""


class _ValuesOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def read_snapshot(file: Path) -> dict[str, Any]:
    """The dictionary in a pickle of plain values. Every instruction is looked at before any is carried out.

    Raises:
        ResultError: unreadable, truncated, damaged, or not such a snapshot.
    """
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ResultError(f"{file}: more than {_MOST_BYTES >> 30} GiB")
        data = file.read_bytes()
    except OSError as e:
        raise ResultError(f"{file}: {e.strerror or e}") from None
    try:
        stored = 0
        for instruction, argument, _ in pickletools.genops(data):
            if instruction.name not in _VALUES:
                raise ResultError(
                    f"{file}: a pickle that holds more than values ({instruction.name}) is not opened",
                    hint="torch.cuda.memory._dump_snapshot() writes dicts, lists, numbers and text",
                )
            if instruction.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
                if argument is not None and argument > stored:
                    raise ResultError(f"{file}: damaged pickle")
                stored += 1
        value = _ValuesOnly(io.BytesIO(data)).load()
    except (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, pickle.UnpicklingError) as e:
        raise ResultError(f"{file}: truncated or damaged pickle ({str(e)[:100]})") from None
    if not isinstance(value, dict) or not isinstance(value.get("device_traces"), list):
        raise ResultError(f"{file}: no device_traces: not a snapshot of PyTorch's allocator")
    return value


def _refuse_too_many(snapshot: dict[str, Any], file: Path) -> None:
    """A list that a pickle names a thousand times is written once: such a file can claim any length."""
    segments = snapshot.get("segments")
    lists = [*snapshot["device_traces"], *(s.get("blocks") for s in segments or () if isinstance(s, dict))]
    count = 0
    for entries in lists:
        if isinstance(entries, list):
            count += len(entries)
            if count > file.stat().st_size:
                raise ResultError(f"{file}: more entries than it has bytes")
