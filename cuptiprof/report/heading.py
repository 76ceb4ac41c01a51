"""What every report says besides its numbers: where they come from, whether a GPU was involved, and what was lost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cuptiprof.report.names import printable

if TYPE_CHECKING:
    from cuptiprof.result import Result

LOSS_TEXTS = {
    "pool_exhausted": "records lost because no buffer was free",
    "cupti_dropped": "records dropped by CUPTI",
    "invalid_timestamps": "records without valid timestamps",
    "budget_evicted": "rows given up for the byte budget",
    "filter_rejected": "rows left out by the filter",
    "orphan_correlations": "GPU records without a launch",
    "region_overflow": "region events lost because a ring was full",
    "spill_dropped": "rows that could not be spilled to disk",
    "unknown_records": "records of an unknown kind",
    "unreconciled_launches": "launches without a GPU record",
}


def losses_line(losses: Mapping[str, int]) -> str:
    """All losses in one line; empty if there are none."""
    parts = [
        f"{count} {LOSS_TEXTS.get(key, 'of')} ({printable(key)})" for key, count in losses.items() if count
    ]
    return f"Losses: {'; '.join(parts)}" if parts else ""


def simulated_label(result: Result) -> str:
    """"simulated (A100)" for a run of the simulated device, else empty."""
    if not result.simulated:
        return ""
    return f"simulated ({printable(str(result.metadata.get('simulated_chip') or 'unnamed chip'))})"


def source_label(result: Result) -> str:
    """Where the data come from, if not from a GPU of this run: simulated, replayed, imported."""
    device = str(result.metadata.get("device", ""))
    parts = [simulated_label(result)]
    if device.startswith("replay:"):
        parts.append(f"replay of {printable(device.removeprefix('replay:'))}")
    elif device.startswith("import:"):
        origin = result.metadata.get("origin") or {}
        producer = origin.get("producer") if isinstance(origin, Mapping) else None
        by = f" (written by {printable(str(producer))})" if producer else ""
        parts.append(f"imported from {printable(device.removeprefix('import:'))}{by}")
    return ", ".join(part for part in parts if part)


def preamble(result: Result, title: str) -> tuple[str, ...]:
    """nvprof's opening lines: the application, the device if it is not simply a GPU, and the title."""
    lines = []
    argv = result.metadata.get("argv")
    if argv:
        lines.append(f"Profiling application: {printable(shlex.join(str(arg) for arg in argv))}")
    source = source_label(result)
    if source:
        lines.append(f"Device: {source}")
    lines.append(title)
    return tuple(lines)


def prefix(result: Result) -> str:
    """nvprof's ``==PID== ``."""
    pid = result.metadata.get("pid")
    return f"=={pid}== " if isinstance(pid, int) and pid else "== "


def facts(result: Result) -> dict[str, Any]:
    """What a program should know about the data, for JSON."""
    out: dict[str, Any] = {
        "simulated": bool(result.simulated),
        "device": str(result.metadata.get("device", "")),
    }
    if result.simulated:
        out["simulated_chip"] = str(result.metadata.get("simulated_chip") or "")
    return out


def losses(result: Result) -> dict[str, int]:
    return {str(key): int(count) for key, count in result.losses.items()}
