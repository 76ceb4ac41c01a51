"""What a trace says beside its events: devices, the distributed job."""

from __future__ import annotations

import ast
import json
from typing import Any

from cuptiprof.io.kineto.skipped import Skipped
from cuptiprof.io.kineto.trace_values import number

_FIELDS = {
    "computeMajor": "compute_capability_major",
    "computeMinor": "compute_capability_minor",
    "totalGlobalMem": "global_memory_size",
    "numSms": "num_multiprocessors",
    "maxThreadsPerBlock": "max_threads_per_block",
    "regsPerBlock": "max_registers_per_block",
    "regsPerMultiprocessor": "max_registers_per_multiprocessor",
    "warpSize": "threads_per_warp",
    "sharedMemPerBlock": "max_shared_memory_per_block",
    "sharedMemPerMultiprocessor": "max_shared_memory_per_multiprocessor",
}
_AS_WRITTEN_BY_ROCM = {"sharedMemPerMultiprocessor": "maxSharedMemoryPerMultiProcessor"}
_LONGEST_TEXT = 1 << 20


def devices(properties: Any, skipped: Skipped) -> dict[str, list[Any]]:
    """Columns of ``devices``; older traces hold the list as Python text."""
    if isinstance(properties, str) and len(properties) < _LONGEST_TEXT:
        try:
            properties = ast.literal_eval(properties)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            properties = []
    out: dict[str, list[Any]] = {}
    for device in properties if isinstance(properties, list) else []:
        if not isinstance(device, dict):
            continue
        try:
            row = {
                column: _count(
                    device.get(key, device.get(_AS_WRITTEN_BY_ROCM.get(key))),
                    64 if column == "global_memory_size" else 32,
                )
                for key, column in _FIELDS.items()
            }
            row["max_warps_per_multiprocessor"] = _count(device.get("maxThreadsPerMultiprocessor")) // max(
                row["threads_per_warp"], 1
            )
            row["device"] = _count(device.get("id"))
        except OverflowError:
            skipped.strangers(1)
            continue
        for column, value in {**row, "name": str(device.get("name", ""))}.items():
            out.setdefault(column, []).append(value)
    return out


def distributed(info: Any) -> dict[str, Any]:
    """The trace's ``distributedInfo``, as JSON that can be written again: backend, world size, process groups."""
    if not isinstance(info, dict):
        return {}
    try:
        return dict(json.loads(json.dumps(info, allow_nan=False)))
    except (ValueError, RecursionError):
        return {}


def _count(value: Any, bits: int = 32) -> int:
    whole = number(value)
    if not 0 <= whole < 1 << bits:
        raise OverflowError(whole)
    return whole
