"""torch.profiler's ``key_averages().table(...)`` over regions and kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report import make_report
from cuptiprof.report.model import Column, Report, View

COLUMNS = (
    Column("cpu_total_ns", "CPU total", "duration", rank=2),
    Column("self_cuda_ns", "Self CUDA", "duration"),
    Column("self_cuda_percent", "Self CUDA %", "percent"),
    Column("cuda_total_ns", "CUDA total", "duration"),
    Column("cuda_avg_ns", "CUDA time avg", "duration", rank=1),
    Column("count", "# of Calls", "count"),
    Column("key", "Name", "text", is_function=True),
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


def _us(field: str) -> Any:
    return property(lambda self: getattr(self, field) / 1000, doc=f"{field}, in us, by torch.profiler's name")


@dataclass(frozen=True)
class KeyAverage:
    """One region path, kernel, copy kind or set. Times in ns; those by torch.profiler's names are in us, as there.

    Attributes:
        key: the name.
        count: calls.
        cpu_total_ns: time of the host in a region; 0 for GPU work.
        self_cuda_ns, cuda_total_ns: of the GPU work, without and with that of nested regions; cuda_avg_ns: of one call.
        self_cuda_percent: of all GPU work.
    """

    key: str
    count: int
    cpu_total_ns: int
    self_cuda_ns: int
    self_cuda_percent: float
    cuda_total_ns: int
    cuda_avg_ns: float

    cpu_time_total = _us("cpu_total_ns")
    cuda_time_total = _us("cuda_total_ns")
    device_time_total = _us("cuda_total_ns")
    self_cuda_time_total = _us("self_cuda_ns")
    self_device_time_total = _us("self_cuda_ns")
    cuda_time = _us("cuda_avg_ns")
    device_time = _us("cuda_avg_ns")


class KeyAverages(list[KeyAverage]):
    """One row a region path (with host time) and one a kernel, copy kind or set."""

    def __init__(self, result: Result) -> None:
        super().__init__(_rows(result.timed()))
        self._result = result

    def table(self, sort_by: str = "self_cuda_time_total", row_limit: int = 100) -> str:
        """The rows as text, by falling `sort_by` (torch.profiler's keys), at most `row_limit` of them.

        Raises:
            ResultError: an unknown key.
        """
        return str(self._report(sort_by, row_limit))

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return self._report("self_cuda_time_total", 100)._repr_html_()

    def _report(self, sort_by: str, row_limit: int) -> Report:
        if sort_by not in SORT_KEYS:
            raise ResultError(f"unknown sort_by={sort_by!r}", hint=f"one of: {', '.join(SORT_KEYS)}")
        key = SORT_KEYS[sort_by]
        rows = sorted(self, key=lambda row: -getattr(row, key))[:row_limit]
        frame = make_report(self._result, "summary", limit=0)
        content = View(COLUMNS, {column.key: [getattr(row, column.key) for row in rows] for column in COLUMNS})
        return replace(frame, view="key-averages", title="Key averages", content=content)


def _rows(result: Result) -> list[KeyAverage]:
    work = [r for r in make_report(result, "summary").rows if r["block"] == "GPU activities"]
    whole = sum(r["time_ns"] for r in work)

    def row(key: str, calls: int, self_ns: int, total_ns: int, host_ns: int) -> KeyAverage:
        share = 100.0 * self_ns / whole if whole else 0.0
        return KeyAverage(key, calls, host_ns, self_ns, share, total_ns, total_ns / calls if calls else 0.0)

    regions = make_report(result, "regions").rows
    out = [
        row(r["region"], r["calls"], r["gpu_self_ns"], r["gpu_total_ns"], r["host_ns"]) for r in regions if r["calls"]
    ]
    return out + [row(r["name"], r["calls"], r["time_ns"], r["time_ns"], 0) for r in work]
