"""Waves and tails: how full the grids of kernels keep the SMs."""

from __future__ import annotations

from cuptiprof.analysis.work.waves import waves
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing
from cuptiprof.report.views.launch_shapes import SHAPE, known, shape_data

_COLUMNS = (
    Column("lost_ns", "Lost", "duration", min_width=8),
    Column("tail_ns", "In tails", "duration", min_width=8, rank=1),
    Column("total_ns", "Time", "duration", min_width=8),
    Column("calls", "Calls", "count", min_width=6, rank=7),
    Column("mean_ns", "Mean", "duration", human=False),
    Column("min_ns", "Min", "duration", human=False),
    Column("max_ns", "Max", "duration", human=False),
    Column("waves", "Waves", "metric"),
    Column("full_waves", "Full", "metric", rank=9),
    Column("last_wave_pct", "Last wave", "percent"),
    Column("efficiency_pct", "Efficiency", "percent"),
    Column("held_blocks", "Held/SM", "metric", rank=8),
    Column("limited_by", "Limit", "label", rank=6),
    *SHAPE,
    Column("name", "Name", "text", is_function=True),
)
_LEGEND = (
    "Waves: blocks of the grid by those that all SMs can hold (Held/SM of each). Efficiency: waves by their number rounded up.",
    "In tails: time of the partial wave after whole ones. Lost: what the last wave left empty, of grids below one wave too.",
    "Both at most, and estimates: all waves take the same time, and nothing else runs beside the kernel.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a kernel, way to launch it and GPU; the one that lost most time first."""
    found = waves(result, demangle)
    rows = len(found.order)
    data = shape_data(result, found.groups, found.order[:limit])
    data |= {
        "lost_ns": found.lost[:limit].tolist(),
        "tail_ns": found.tail[:limit].tolist(),
        "waves": known(found.waves[:limit]),
        "full_waves": known(found.full[:limit]),
        "last_wave_pct": known(100 * found.last[:limit]),
        "efficiency_pct": known(100 * found.efficiency[:limit]),
        "held_blocks": known(found.held[:limit]),
        "limited_by": [limit_ or None for limit_ in found.limit[:limit]],
    }
    whole, lost, tail = (int(column.sum()) for column in (found.groups.stats.total, found.lost, found.tail))
    shares = [100 * time / whole if whole else 0.0 for time in (tail, lost)]
    line = (f"Of all kernel time at most {shares[0]:.2f} % in tails, {shares[1]:.2f} % lost.",)
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*left_out(rows, len(data["calls"])), *((*line, *_LEGEND) if rows else ())),
        notes={"": nothing("kernels", result.losses["filter_rejected"])},
        facts={"total_ns": whole, "tail_ns": tail, "lost_ns": lost},
    )
