"""``cuptiprof.open`` of a spill folder: the stores that a process left which was killed before it could stop its session."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.result import Losses, Progress, Result
from cuptiprof.data.tables import Strings, Table, merge, schema
from cuptiprof.errors import ResultError
from cuptiprof.io.spill_folder import FORMAT, PREFIX, read_segment, rows_of


def find_spill(folder: Path) -> Path | None:
    """The spill folder that `folder` is or holds; None: neither.

    Raises:
        ResultError: it holds several.
    """
    if (folder / "spill.json").is_file():
        return folder
    inside = sorted(f for f in folder.glob(f"{PREFIX}*") if (f / "spill.json").is_file())
    if len(inside) > 1:
        raise ResultError(
            f"{folder} holds {len(inside)} spilled runs: {', '.join(f.name for f in inside)}", hint="open one of them"
        )
    return inside[0] if inside else None


def open_spill(folder: Path, progress: Progress | None = None) -> Result:
    """What is there, and in `losses` what is not.

    Raises:
        ResultError: not written by cuptiprof, or by a newer one.
    """
    header = _read_json(folder / "spill.json")
    if header.get("format") != FORMAT or not isinstance(header.get("metadata"), dict):
        raise ResultError(f"{folder}: not a spill folder of this version", hint="pip install -U cuptiprof")
    segments = sorted(f for f in folder.iterdir() if f.is_dir() and f.name.isdecimal())
    parts: list[dict[str, Table]] = []
    notes = [str(note) for note in header.get("notes", [])]
    damaged: Counter[str] = Counter()
    for i, segment in enumerate(segments):
        try:
            parts.append(read_segment(segment, None))
        except ResultError as e:
            damaged.update(rows_of(segment))
            notes.append(str(e))
        if progress is not None:
            progress(i + 1, len(segments))
    tables = merge(parts) if parts else {n: Table.empty(n, Strings()) for n in schema()}
    metadata: dict[str, Any] = dict(header["metadata"])
    so_far = _progress(folder)
    losses = {name: so_far.get(name, 0) for name in Losses.DOCS}
    losses["spill_dropped"] += damaged.total()
    # Graph nodes have records and no launch of their own.
    kept = int(np.sum(tables["kernels"]["graph_node_id"] == 0))
    missing = max(so_far.get("launches", 0) - kept - so_far.get("accounted", 0) - damaged["kernels"], 0)
    losses["unreconciled_launches"] += missing
    metadata["launches"] = {"launches": so_far.get("launches", 0)}
    ends = [int(t["end"].max()) for t in tables.values() if len(t) and "end" in t.column_names]
    metadata["stop_time_ns"] = max(ends, default=metadata.get("start_time_ns", 0))
    state = "is still running" if _is_alive(metadata) else "ended before its session was stopped"
    notes.insert(
        0,
        f"process {metadata.get('pid')} {state}: {len(parts)} stores of it were on disk, and {missing} kernels it had "
        "launched were not; regions and copies of that time are missing too",
    )
    metadata["note"] = "; ".join(notes)
    return Result(tables, metadata, losses)


def _progress(folder: Path) -> dict[str, int]:
    try:
        read = _read_json(folder / "progress.json")
    except ResultError:
        return {}
    return {k: v for k, v in read.items() if isinstance(v, int) and v >= 0}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as e:
        raise ResultError(f"{file}: damaged ({getattr(e, 'strerror', None) or e})") from None
    if not isinstance(read, dict):
        raise ResultError(f"{file}: not written by cuptiprof")
    return read


def _is_alive(metadata: dict[str, Any]) -> bool:
    if metadata.get("host") != socket.gethostname() or not isinstance(metadata.get("pid"), int):
        return False
    try:
        os.kill(metadata["pid"], 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
