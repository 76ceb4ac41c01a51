"""nvprof's --print-api-trace: every CUDA runtime and driver call in the order of entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out

_COLUMNS = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("thread", "Thread", "count", min_width=8, rank=2),
    Column("correlation", "Correlation", "count", human=False),
    Column("domain", "Domain", "label", human=False),
    Column("return_value", "Error", "count", rank=1),
    Column("region", "Region", "text", rank=3),
    Column("name", "Name", "text", suffix_key="correlation"),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a call. The columns of errors and regions are shown to people only if there are any."""
    del demangle  # names of API functions are not mangled
    api = result.api_calls
    rows = np.argsort(api["start"], kind="stable")[:limit]
    start = api["start"][rows]
    origin = origin_ns(result)
    strings = api.strings
    data: dict[str, list[Any]] = {
        "start_ns": (start - origin).tolist(),
        "duration_ns": (api["end"][rows] - start).tolist(),
        "thread": api["thread"][rows].tolist(),
        "correlation": api["correlation_id"][rows].tolist(),
        "domain": ["driver" if domain else "runtime" for domain in api["domain"][rows].tolist()],
        "return_value": [code or None for code in api["return_value"][rows].tolist()],
        "region": [strings[code] or None for code in api.codes("region")[rows].tolist()],
        "name": [strings[code] for code in api.codes("name")[rows].tolist()],
    }
    hidden = {key for key in ("return_value", "region") if not any(data[key])}
    return View(
        columns=tuple(replace(column, human=False) if column.key in hidden else column for column in _COLUMNS),
        data=data,
        footers=left_out(len(api), len(rows)),
        notes={"": "No API calls were recorded."},
        facts={"origin_ns": origin, "total_rows": len(api)},
    )
