"""nvprof's --print-api-trace: every CUDA runtime and driver call in the order of entry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cuptiprof.report import heading
from cuptiprof.report.activities import origin_ns
from cuptiprof.report.model import Column, TableModel
from cuptiprof.report.view import Options, left_out

if TYPE_CHECKING:
    from cuptiprof.result import Result

_COLUMNS = (
    Column("start_ns", "Start", "instant", min_width=8),
    Column("duration_ns", "Duration", "duration", min_width=8),
    Column("thread", "Thread", "id", min_width=8),
    Column("process", "Process", "id", human=False),
    Column("correlation_id", "Correlation", "id", human=False),
    Column("domain", "Domain", "label", human=False),
    Column("return_value", "Error", "count"),
    Column("region", "Region", "label"),
    Column("name", "Name", "text", suffix_key="correlation_id"),
)


class ApiTraceView:
    """One row a call. The error column is shown to people only if a call failed."""

    name = "api-trace"
    help = "every CUDA runtime and driver call in order, as nvprof --print-api-trace"

    def build(self, result: Result, options: Options) -> TableModel:
        api = result.tables["api_calls"]
        rows = np.argsort(api["start"], kind="stable")[: options.limit]
        start = api["start"][rows]
        strings = api.strings
        data = {
            "start_ns": start.tolist(),
            "duration_ns": (api["end"][rows] - start).tolist(),
            "domain": ["driver" if domain else "runtime" for domain in api["domain"][rows].tolist()],
            **{key: [strings[code] for code in api.codes(key)[rows].tolist()] for key in ("name", "region")},
            **{
                key: api[key][rows].tolist()
                for key in ("thread", "process", "correlation_id", "return_value")
            },
        }
        empty = {key for key in ("return_value", "region") if not any(data[key])}
        return TableModel(
            view=self.name,
            title="API trace",
            columns=tuple(
                replace(column, human=False) if column.key in empty else column for column in _COLUMNS
            ),
            data=data,
            preamble=heading.preamble(result, "Profiling result:"),
            footers=left_out(len(api), len(rows)),
            notes={"": "No API calls were recorded."},
            losses=heading.losses(result),
            losses_line=heading.losses_line(result.losses),
            facts=heading.facts(result) | {"total_rows": len(api)},
            origin_ns=origin_ns(result),
            prefix=heading.prefix(result),
        )
