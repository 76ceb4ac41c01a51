"""Snapshots of PyTorch's caching allocator, the pickle that ``torch.cuda.memory._dump_snapshot()`` writes: read from anywhere,
without running anything that is in it."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError
from cuptiprof.io.allocator_rows import FrameTree, as_arrays, snapshot_rows

_MOST_BYTES = 4 << 30


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
