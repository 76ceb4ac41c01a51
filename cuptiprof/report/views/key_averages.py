"""torch.profiler's ``key_averages().table(...)`` over regions and kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report import make_report
from cuptiprof.report.model import Column, View

COLUMNS = (
    Column("cpu_total_ns", "CPU total", "duration"),
    Column("self_cuda_ns", "Self CUDA", "duration"),
    Column("self_cuda_percent", "Self CUDA %", "percent"),
    Column("cuda_total_ns", "CUDA total", "duration"),
    Column("cuda_avg_ns", "CUDA time avg", "duration"),
    Column("count", "# of Calls", "count"),
    Column("name", "Name", "text"),
)

# torch.profiler's keys, the older and the newer spelling.
SORT_KEYS = {
    "self_cuda_time_total": "self_cuda_ns",
    "self_device_time_total": "self_cuda_ns",
    "cuda_time_total": "cuda_total_ns",
    "device_time_total": "cuda_total_ns",
    "cuda_time": "cuda_avg_ns",
    "device_time": "cuda_avg_ns",
    "cpu_time_total": "cpu_total_ns",
    "count": "count",
}


class KeyAverages(list[dict[str, Any]]):
    """One row a region path (with host time) and one a kernel, copy kind or set; times in ns."""

    def __init__(self, result: Result) -> None:
        super().__init__(_rows(result.timed()))
        self._result = result

    def table(self, sort_by: str = "self_cuda_time_total", row_limit: int = 100) -> str:
        """The rows as text, by falling `sort_by` (torch.profiler's keys), at most `row_limit` of them.

        Raises:
            ResultError: an unknown key.
        """
        if sort_by not in SORT_KEYS:
            raise ResultError(f"unknown sort_by={sort_by!r}", hint=f"one of: {', '.join(SORT_KEYS)}")
        key = SORT_KEYS[sort_by]
        rows = sorted(self, key=lambda r: -(r[key] or 0))[:row_limit]
        frame = make_report(self._result, "summary", limit=0)
        content = View(COLUMNS, {column.key: [row[column.key] for row in rows] for column in COLUMNS})
        return replace(frame, view="key-averages", title="Key averages", content=content).to("text")


def _rows(result: Result) -> list[dict[str, Any]]:
    work = [r for r in make_report(result, "summary").rows if r["block"] == "GPU activities"]
    total = sum(r["time_ns"] for r in work)

    def row(name: str, calls: int, self_ns: int, total_ns: int, host_ns: int | None) -> dict[str, Any]:
        return {
            "name": name,
            "count": calls,
            "cpu_total_ns": host_ns,
            "self_cuda_ns": self_ns,
            "self_cuda_percent": 100.0 * self_ns / total if total else 0.0,
            "cuda_total_ns": total_ns,
            "cuda_avg_ns": total_ns / calls if calls else 0.0,
        }

    regions = make_report(result, "regions").rows
    out = [
        row(r["region"], r["calls"], r["gpu_self_ns"], r["gpu_total_ns"], r["host_ns"]) for r in regions if r["calls"]
    ]
    return out + [row(r["name"], r["calls"], r["time_ns"], r["time_ns"], None) for r in work]
