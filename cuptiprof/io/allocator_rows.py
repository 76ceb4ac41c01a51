"""A snapshot of PyTorch's caching allocator, as ``torch.cuda.memory._snapshot()`` gives it, as rows of our tables.

Its layout is that of torch/csrc/cuda/memory_snapshot.cpp and Module.cpp from torch 2.4 to 2.13: what a version does not have is 0 or
empty. A snapshot may come from a file of somebody else's, so nothing in it is believed before it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuptiprof.data.enums import ALLOCATOR_ACTIONS, BLOCK_STATES
from cuptiprof.data.tables import Array, Strings

Snapshot = Mapping[str, Any]
Columns = dict[str, list[int]]

_ACTIONS = {text: code for code, text in ALLOCATOR_ACTIONS.items()}
_STATES = {text: code for code, text in BLOCK_STATES.items()} | {"active_awaiting_free": 2}  # torch's docs call it so
OOM = _ACTIONS["oom"]
_LONGEST_TEXT = 4096
_MICROSECONDS = 2**62 // 1000


@dataclass
class FrameTree:
    """Stacks as rows of the table ``stacks``: frames below frames, each once, numbered from `first`.

    `is_user` says of a file's name whether its code is the user's.
    """

    strings: Strings
    is_user: Callable[[str], bool]
    first: int = 1
    rows: Columns = field(
        default_factory=lambda: {c: [] for c in ("id", "parent", "line", "file", "function", "is_user")}
    )
    _known: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    _by_list: dict[int, tuple[int, int]] = field(default_factory=dict)

    def place(self, frames: Any) -> tuple[int, int]:
        """(stacks.id, string index of the innermost line of the user's) of torch's list of frames, the innermost first; (0, 0) of none."""
        if not isinstance(frames, list) or not frames:
            return 0, 0
        found = self._by_list.get(id(frames))  # torch gives one list to all events of one place
        if found is None:
            found = self._by_list[id(frames)] = self._add(frames)
        return found

    def below(self, place: tuple[int, int], frame: Mapping[str, Any]) -> tuple[int, int]:
        """The place of a frame that is called from another place."""
        parent, line = place
        file, function = _text(frame.get("filename")), _text(frame.get("name"))
        number, is_user = _line(frame.get("line")), is_python(file) and self.is_user(file)
        key = (parent, self.strings.code(file), self.strings.code(function), number)
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = self.first + len(self.rows["id"])
            row = {"id": node, "parent": parent, "file": key[1], "function": key[2], "line": number}
            for name, value in {**row, "is_user": int(is_user)}.items():
                self.rows[name].append(value)
        return node, self.strings.code(f"{file}:{number} {function}") if is_user else line

    def _add(self, frames: list[Any]) -> tuple[int, int]:
        place = (0, 0)
        for frame in reversed(frames):
            if isinstance(frame, dict):
                place = self.below(place, frame)
        return place


@dataclass
class SnapshotRows:
    """Rows of ``allocator_events`` (timestamps in ns of Unix time) and ``allocator_blocks``.

    Attributes:
        unknown: entries that make no sense.
        devices: traces that the snapshot has, one a device.
    """

    events: Columns
    blocks: Columns
    unknown: int = 0
    devices: int = 0


def as_arrays(columns: Columns) -> dict[str, Array]:
    """The same as uint64, (rows,): a list of Python's numbers beyond 2**63 would become floats."""
    return {name: np.asarray(column, np.uint64) for name, column in columns.items()}


_EVENT_COLUMNS = (
    "timestamp", "address", "bytes", "device_free", "pool", "stream", "line", "stack", "compile_context", "user_metadata", "device",
    "action",
)  # fmt: skip
_BLOCK_COLUMNS = (
    "address", "bytes", "requested", "segment", "segment_bytes", "pool", "pool_kind", "stream", "stack", "device", "state", "is_small",
    "is_expandable",
)  # fmt: skip


def snapshot_rows(snapshot: Snapshot, frames: FrameTree, *, since_us: int = 0) -> SnapshotRows:
    """Rows of what the snapshot tells; of its history only what came at `since_us` (us of Unix time) or later."""
    out = SnapshotRows({c: [] for c in _EVENT_COLUMNS}, {c: [] for c in _BLOCK_COLUMNS})
    traces = snapshot.get("device_traces")
    traces = traces if isinstance(traces, list) else []
    out.devices = len(traces)
    for device, trace in enumerate(traces):
        for entry in trace if isinstance(trace, list) else []:
            try:
                if entry.get("time_us", 0) >= since_us:
                    _append(out.events, _event(entry, device, frames))
            except (AttributeError, KeyError, TypeError, ValueError):
                out.unknown += 1
    segments = snapshot.get("segments")
    for segment in segments if isinstance(segments, list) else []:
        try:
            for row in _blocks(segment, frames):
                _append(out.blocks, row)
        except (AttributeError, KeyError, TypeError, ValueError):
            out.unknown += 1
    return out


def _append(columns: Columns, row: dict[str, int]) -> None:
    for name, column in columns.items():
        column.append(row[name])


def _event(entry: dict[str, Any], device: int, frames: FrameTree) -> dict[str, int]:
    action = _ACTIONS[entry["action"]]
    time_us = entry.get("time_us", 0)  # snapshots older than torch 2.1 have none
    if not isinstance(time_us, int) or not 0 <= time_us < _MICROSECONDS:
        raise ValueError(time_us)
    stack, line = frames.place(entry.get("frames"))
    texts = [frames.strings.code(_text(entry.get(key, ""))) for key in ("compile_context", "user_metadata")]
    return {
        "timestamp": time_us * 1000,
        "address": 0 if action == OOM else _whole(entry["addr"]),
        "bytes": _whole(entry["size"]),
        "device_free": _whole(entry.get("device_free", 0)) if action == OOM else 0,
        "pool": _pool(entry.get("pool_id", entry.get("segment_pool_id")))[1],
        "stream": _stream(entry.get("stream", 0)),
        "line": line,
        "stack": stack,
        "compile_context": 0 if frames.strings[texts[0]] == "N/A" else texts[0],  # torch's word for none
        "user_metadata": texts[1],
        "device": device,
        "action": action,
    }


def _blocks(segment: dict[str, Any], frames: FrameTree) -> list[dict[str, int]]:
    address = _whole(segment["address"])
    pool_kind, pool = _pool(segment.get("segment_pool_id"))
    whole = {
        "segment": address,
        "segment_bytes": _whole(segment["total_size"]),
        "pool": pool,
        "pool_kind": pool_kind,
        "stream": _stream(segment.get("stream", 0)),
        "device": _whole(segment.get("device", 0), 32),
        "is_small": int(segment.get("segment_type") == "small"),
        "is_expandable": int(bool(segment.get("is_expandable", False))),
    }
    rows = []
    for block in segment["blocks"]:
        size = _whole(block["size"])
        rows.append(
            {
                **whole,
                "address": address,
                "bytes": size,
                "requested": _whole(block.get("requested_size", size)),
                "stack": frames.place(block.get("frames"))[0],
                "state": _STATES[block["state"]],
            }
        )
        address = _whole(address + size)
    return rows


def is_python(file: str) -> bool:
    """Not C++, whose frames torch puts before Python's where it was asked for both."""
    return file.endswith((".py", ".pyw")) or "ipykernel" in file or file.startswith("<ipython")


def _line(value: Any) -> int:
    """torch writes -1, as a number of 64 bits, where Python has no line."""
    if not isinstance(value, int):
        raise TypeError(type(value))
    return value if 0 <= value < 1 << 32 else 0


def _whole(value: Any, bits: int = 64) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise ValueError(value)
    return value


def _stream(value: Any) -> int:
    """torch writes the pointer as a signed number."""
    if not isinstance(value, int) or not -(1 << 63) <= value < 1 << 64:
        raise ValueError(value)
    return value % (1 << 64)


def _pool(value: Any) -> tuple[int, int]:
    if value is None:
        return 0, 0
    first, second = value
    return _whole(first), _whole(second)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value))
    return value[:_LONGEST_TEXT]
