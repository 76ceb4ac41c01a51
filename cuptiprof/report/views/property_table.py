"""The kernel view of TensorBoard's plugin by "Kernel Properties + Op Name"."""

from __future__ import annotations

from cuptiprof.analysis.work.kernel_properties import kernel_properties
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing
from cuptiprof.report.views.launch_shapes import SHAPE, known, shape_data

_COLUMNS = (
    Column("percent", "Time(%)", "percent", min_width=7, rank=8),
    Column("total_ns", "Time", "duration", min_width=8),
    Column("calls", "Calls", "count", min_width=6),
    Column("mean_ns", "Mean", "duration", min_width=8, rank=7),
    Column("min_ns", "Min", "duration", min_width=8, rank=10),
    Column("max_ns", "Max", "duration", min_width=8, rank=9),
    *SHAPE,
    Column("blocks_per_sm", "Blocks/SM", "metric", rank=11),
    Column("occupancy_pct", "Est. occ.", "percent", rank=1),
    Column("tensor_cores", "TC", "label"),
    Column("eligible", "Op for TC", "label", rank=12),
    Column("operator", "Operator", "text"),
    Column("name", "Name", "text", is_function=True),
)
_LEGEND = (
    "TC: used tensor cores, by a counter or guessed by the name. Op for TC: they could do what the operator does.",
    "Shared: of a block, static and dynamic. Est. occupancy: what launches allow, of that what their blocks fill.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a kernel, way to launch it, GPU and operator, by total time."""
    found = kernel_properties(result, demangle)
    whole, rows = int(found.groups.stats.total.sum()), len(found.order)
    data = shape_data(result, found.groups, found.order[:limit])
    data |= {
        "percent": [100.0 * time / whole if whole else 0.0 for time in data["total_ns"]],
        "blocks_per_sm": known(found.blocks_per_sm[:limit]),
        "occupancy_pct": known(found.occupancy[:limit]),
        "tensor_cores": ["yes" if time else "no" for time in found.tensor[:limit].tolist()],
        "eligible": ["yes" if eligible else "no" for eligible in found.eligible[:limit]],
        "operator": [name or None for name in found.operator[:limit]],
    }
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*left_out(rows, len(data["calls"])), *(_LEGEND if rows else ())),
        notes={"": nothing("kernels", result.losses["filter_rejected"])},
    )
