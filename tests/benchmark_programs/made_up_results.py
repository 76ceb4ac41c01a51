"""Results of GPUs that do not exist, for tests of the page that is made from results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

H100 = {"chip": "GH100", "gpu": "NVIDIA H100 80GB HBM3", "driver": "580.65.06", "cupti_version": 130001}


def result(benchmark: str, *, machine: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    """A result file of a GPU."""
    return {"benchmark": benchmark, "device": "cuda", "simulated": False, "machine": machine or H100, **data}


def verify_rows(**verdicts: str) -> dict[str, Any]:
    """JSON of ``cuptiprof verify``; probe (with _ for -) -> verdict of its only number."""
    rows = [
        {"probe": p.replace("_", "-"), "metric": "flop_count_sp", "expected": 1024.0, "measured": 1000.0, "verdict": v, "why": "it needs two GPUs"}
        for p, v in verdicts.items()
    ]  # fmt: skip
    return {"view": "verify", "metadata": {"simulated": False}, "rows": rows}


def answer(probe: str, **more: Any) -> dict[str, Any]:
    """A line of benchmarks.probes."""
    return {"probe": probe, "question": "?", "simulated": False, **more}


def overhead_row(workload: str, condition: str, group: str, ns: float, **more: Any) -> dict[str, Any]:
    """A row of benchmarks.overhead."""
    return {"workload": workload, "condition": condition, "group": group, "available": True, "step_ns": {"median": ns}, **more}  # fmt: skip


def put(folder: Path, name: str, data: Any) -> None:
    """Write a result."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def row_of(page: str, start: str) -> str:
    """The last cell of the one row that begins so."""
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {start}")]
    return line.rstrip(" |").rpartition(" | ")[2]
