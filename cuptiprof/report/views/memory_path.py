"""The memory diagram that goes with nvprof's metrics, as a table: what flowed along each of its sixteen arrows.

On the chips of today L1 and the texture cache are one, so that arrows 5 and 7 (and the two hit rates) may show one quantity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.work.counted import NOTHING, units
from cuptiprof.data.result import Result
from cuptiprof.metrics.name_tables import memory_path as arrows_of_the_diagram
from cuptiprof.report.model import Column, Heading, View, left_out
from cuptiprof.report.views.nvprof_metrics import aggregate, kernel_lines

_COLUMNS = (
    Column("device", "Device", "label"),
    Column("device_ordinal", "Device", "count", human=False),
    Column("work", "Work", "text", machine=False),
    Column("kernel", "Kernel", "text", human=False),
    Column("arrow", "Arrow", "count", min_width=5),
    Column("source", "From", "text"),
    Column("target", "To", "text"),
    Column("metric", "Metric", "text"),
    Column("value", "Avg", "metric", unit_key="unit", min_width=10),
    Column("unit", "Unit", "label", human=False),
    Column("note", "Note", "text", rank=1),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """All arrows of each kernel: from, to, metric and its mean over the launches that were measured. ``limit`` is kernels."""
    found, unit_of = aggregate(result, demangle), units(result)
    lines = kernel_lines(result, found)
    index = {name: i for i, name in enumerate(found.metrics)}
    wanted = {name for arrow in arrows_of_the_diagram() for group in arrow.metrics for name in group}
    starts = np.flatnonzero(found.new_kernel).tolist()
    spans = list(zip(starts, [*starts[1:], len(found.metric)][: len(starts)], strict=True))
    data: dict[str, list[Any]] = {column.key: [] for column in _COLUMNS}
    for first, after in spans[:limit] if wanted & set(index) else []:
        values = dict(zip(found.metric[first:after].tolist(), found.mean[first:after].tolist(), strict=True))
        line = {key: column[first] for key, column in lines.items()}
        for arrow in arrows_of_the_diagram():
            for group in arrow.metrics or ((),):
                measured = next((name for name in group if index.get(name, -1) in values), None)
                name = measured or (group[0] if group else None)
                row = line | {
                    "arrow": arrow.number,
                    "source": arrow.source,
                    "target": arrow.target,
                    "metric": name,
                    "value": values[index[measured]] if measured else None,
                    "unit": unit_of[measured] if measured else None,
                    "note": arrow.note or (None if measured else "not measured"),
                }
                for key, column in data.items():
                    column.append(row[key])
    nothing = "No metric of the memory paths was recorded; docs/counters.md names them."
    return View(
        columns=_COLUMNS,
        data=data,
        headings=(Heading("device", 'Device "{}"'), Heading("work")),
        notes={"": nothing if len(result.counters) else NOTHING},
        footers=left_out(len(spans), len(spans[:limit]), "kernels or regions"),
    )
