"""The memory diagram that goes with nvprof's metrics, as a table: what flowed along each of its sixteen arrows.

On the chips of today L1 and the texture cache are one, so that arrows 5 and 7 (and the two hit rates) may show one quantity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuptiprof.report.counted import NOTHING, units
from cuptiprof.report.model import Column, Heading, View, left_out
from cuptiprof.report.nvprof_metrics import aggregate, kernel_lines
from cuptiprof.result import Result


@dataclass(frozen=True)
class Arrow:
    """One arrow of the diagram. ``metrics`` are groups of names for one quantity, the nvprof name of its time first."""

    number: int
    source: str
    target: str
    metrics: tuple[tuple[str, ...], ...] = ()
    note: str = ""


_WRITE_THROUGH = "L1 is write-through: see the other local and global metrics"

ARROWS = (
    Arrow(1, "device memory", "L2", (("dram_read_throughput",), ("dram_read_transactions",))),
    Arrow(2, "L2", "device memory", (("dram_write_throughput",), ("dram_write_transactions",))),
    Arrow(3, "system memory", "L2", (("sysmem_read_throughput",), ("sysmem_read_transactions",))),
    Arrow(4, "L2", "system memory", (("sysmem_write_throughput",), ("sysmem_write_transactions",))),
    Arrow(5, "L2", "L1", (("l2_l1_read_throughput",), ("l2_l1_read_transactions",))),
    Arrow(6, "L1", "L2", (("l2_l1_write_throughput",), ("l2_l1_write_transactions",))),
    Arrow(7, "L2", "texture cache", (("l2_texture_read_throughput", "l2_tex_read_throughput"),
                                     ("l2_texture_read_transactions", "l2_tex_read_transactions"))),
    Arrow(8, "texture cache", "L2", note="textures are read-only"),
    Arrow(9, "shared memory", "kernel", (("shared_load_throughput",), ("shared_load_transactions",))),
    Arrow(10, "kernel", "shared memory", (("shared_store_throughput",), ("shared_store_transactions",))),
    Arrow(11, "L1", "local memory", (("l1_cache_local_hit_rate", "local_hit_rate"),)),
    Arrow(12, "local memory", "L1", note=_WRITE_THROUGH),
    Arrow(13, "L1", "global memory", (("l1_cache_global_hit_rate", "global_hit_rate"),)),
    Arrow(14, "global memory", "L1", note=_WRITE_THROUGH),
    Arrow(15, "global memory", "kernel", (("gld_efficiency",), ("gld_throughput",), ("gld_transactions",))),
    Arrow(16, "kernel", "global memory", (("gst_efficiency",), ("gst_throughput",), ("gst_transactions",))),
)  # fmt: skip

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
    Column("note", "Note", "text"),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """All arrows of each kernel: from, to, metric and its mean over the launches that were measured. ``limit`` is kernels."""
    found, unit_of = aggregate(result, demangle), units(result)
    lines = kernel_lines(result, found)
    index = {name: i for i, name in enumerate(found.metrics)}
    wanted = {name for arrow in ARROWS for group in arrow.metrics for name in group}
    starts = np.flatnonzero(found.new_kernel).tolist()
    spans = list(zip(starts, [*starts[1:], len(found.metric)][: len(starts)], strict=True))
    data: dict[str, list[Any]] = {column.key: [] for column in _COLUMNS}
    for first, after in spans[:limit] if wanted & set(index) else []:
        values = dict(zip(found.metric[first:after].tolist(), found.mean[first:after].tolist(), strict=True))
        line = {key: column[first] for key, column in lines.items()}
        for arrow in ARROWS:
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
