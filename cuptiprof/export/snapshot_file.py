"""The history of PyTorch's caching allocator as torch's own snapshot, which https://pytorch.org/memory_viz opens."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cuptiprof.analysis.operator_work.operator_places import KNOWN
from cuptiprof.data.enums import ALLOCATOR_ACTIONS, BLOCK_STATES
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Table
from cuptiprof.errors import ResultError
from cuptiprof.io.allocator_rows import OOM

_PROTOCOL = 4
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
