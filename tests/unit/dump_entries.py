"""Dumps of PyTorch's flight recorder that tests make: entries as torch has them, and files of them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

Dumps = dict[int, dict[str, Any]]


def entry(
    number: int, operation: str = "all_reduce", *, group: tuple[str, str] = ("0", "default_pg"), **more: Any
) -> dict[str, Any]:
    """A collective of the group that is complete."""
    return {
        "frames": [
            {"name": "all_reduce", "filename": "/x/torch/distributed/distributed_c10d.py", "line": 1},
            {"name": "step", "filename": "train.py", "line": 12},
        ],
        "record_id": number - 1, "pg_id": 0, "process_group": group, "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number,
        "profiling_name": f"nccl:{operation}", "time_created_ns": 10**18 + number, "duration_ms": 0.5,
        "input_sizes": [[4, 5]], "input_dtypes": ["Float"], "output_sizes": [[4, 5]], "output_dtypes": ["Float"],
        "state": "completed", "time_discovered_started_ns": 10**18 + number, "time_discovered_completed_ns": None,
        "retired": True, "timeout_ms": 600000, "is_p2p": False, **more,
    }  # fmt: skip


def dump(entries: list[dict[str, Any]], groups: dict[str, tuple[str, list[int]]]) -> dict[str, Any]:
    config = {name: {"name": name, "desc": desc, "ranks": str(ranks)} for name, (desc, ranks) in groups.items()}
    return {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27", "pg_status": {}, "entries": entries}


def write(folder: Path, dumps: Dumps, *, as_json: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, value in dumps.items():
        path = folder / f"nccl_trace_rank_{rank}{'.json' if as_json else ''}"
        path.write_bytes(json.dumps(value).encode() if as_json else pickle.dumps(value, 2))
    return folder
