"""The kernel view of TensorBoard's plugin: kernels by name, tensor cores, blocks per SM, occupancy."""

from __future__ import annotations

import math

from cuptiprof.analysis.work.kernel_figures import kernel_figures
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing

_COLUMNS = (
    Column("percent", "Time(%)", "percent", min_width=7, rank=4),
    Column("total_ns", "Time", "duration", min_width=8),
    Column("calls", "Calls", "count", min_width=6),
    Column("mean_ns", "Mean", "duration", min_width=8),
    Column("min_ns", "Min", "duration", min_width=8, rank=3),
    Column("max_ns", "Max", "duration", min_width=8, rank=2),
    Column("blocks_per_sm", "Blocks/SM", "metric"),
    Column("occupancy_pct", "Est. occ.", "percent"),
    Column("tensor_cores", "TC", "label"),
    Column("tensor_by", "TC by", "label", rank=1),
    Column("tensor_ns", "TC time", "duration", human=False),
    Column("name", "Name", "text", is_function=True),
)
_LEGEND = (
    "Blocks/SM and est. occupancy: means by time. TC: used tensor cores; by a counter, or guessed by the name.",
    "Est. occupancy: what launches allow, of that what their blocks fill; 0 in files of Kineto's for kernels of more than 48 KiB of shared memory.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a kernel by name, by total time."""
    found = kernel_figures(result, demangle)
    whole, tensor, rows = int(found.total.sum()), int(found.tensor.sum()), len(found.name)
    total = found.total[:limit].tolist()

    def known(values: list[float]) -> list[float | None]:
        return [None if math.isnan(value) else value for value in values]

    data = {
        "percent": [100.0 * time / whole if whole else 0.0 for time in total],
        "total_ns": total,
        "calls": found.calls[:limit].tolist(),
        "mean_ns": (found.total / found.calls)[:limit].tolist(),
        "min_ns": found.minimum[:limit].tolist(),
        "max_ns": found.maximum[:limit].tolist(),
        "blocks_per_sm": known(found.blocks_per_sm[:limit].tolist()),
        "occupancy_pct": known(found.occupancy[:limit].tolist()),
        "tensor_cores": ["yes" if time else "no" for time in found.tensor[:limit].tolist()],
        "tensor_by": ["counter" if counted else "name" for counted in found.counted[:limit].tolist()],
        "tensor_ns": found.tensor[:limit].tolist(),
        "name": found.name[:limit],
    }
    share = 100.0 * tensor / whole if whole else None
    line = (f"Kernel time on tensor cores: {share:.2f} %.",) if share is not None else ()
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*left_out(rows, len(total)), *(line + _LEGEND if rows else ())),
        notes={"": nothing("kernels", result.losses["filter_rejected"])},
        facts={"tensor_core_pct": share},
    )
