"""nvvp's "Kernel Optimization Priorities": which kernel is most worth the work.

NVIDIA never published its formula. Here the weight of a kernel is its total time x (1 - occupancy), so that a long kernel
that leaves the SMs half empty comes first, and ranks are weights scaled so that the first has 100 (and none less than 1).
Kernels that communicate are not ranked: nobody makes them faster by their occupancy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.measured_use import OCCUPANCY, measured
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.data.occupancy import chip_limits, occupancy
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing
from cuptiprof.text.units import format_percent, format_time

_COLUMNS = (
    Column("rank", "Rank", "count", min_width=4),
    Column("instances", "Instances", "count", rank=2),
    Column("time_ns", "Time", "duration", min_width=8),
    Column("percent", "Time(%)", "percent", min_width=7, rank=1),
    Column("occupancy_percent", "Occupancy", "percent"),
    Column("occupancy_from", "From", "label", rank=3),
    Column("weight_ns", "Weight", "duration", human=False),
    Column("name", "Name", "text", is_function=True),
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """Kernels by falling weight. Where no occupancy was measured, the theoretical one of the launch takes its place.

    Times are those of the activity records, never of measured ranges, which counters make longer. A kernel whose occupancy
    is not known at all counts as if it had none.
    """
    talk = communicating(result.kernels)
    waiting = int(result.kernels["duration"][talk].sum())
    if talk.any():
        result = result.with_kernels(~talk)
    kernels = result.kernels
    names = kernel_names(kernels, demangle)
    n = len(names.names)
    count = np.bincount(names.ids, minlength=n)
    duration = kernels["end"] - kernels["start"]
    time = np.zeros(n, np.int64)
    np.add.at(time, names.ids, duration)
    known = _mean_by_name(names.ids, measured(result, OCCUPANCY), n)
    theoretical = _mean_by_name(names.ids, _theoretical(result), n)
    used = np.clip(np.where(np.isnan(known), theoretical, known), 0.0, 1.0)
    weight = time * (1.0 - np.where(np.isnan(used), 0.0, used))
    top = weight.max(initial=0.0)
    rank = np.maximum(np.rint(100 * weight / top), 1).astype(int) if top > 0 else np.ones(n, int)
    order = np.lexsort((np.arange(n), -time, -weight))[:limit]
    whole = int(time.sum())
    source = np.where(np.isnan(known), np.where(np.isnan(theoretical), "unknown", "theoretical"), "measured")
    data: dict[str, Any] = {
        "rank": rank[order].tolist(),
        "name": [names.names[i] for i in order.tolist()],
        "instances": count[order].tolist(),
        "time_ns": time[order].tolist(),
        "percent": (100.0 * time[order] / whole if whole else np.zeros(len(order))).tolist(),
        "occupancy_percent": (100 * used[order]).tolist(),
        "occupancy_from": source[order].tolist(),
        "weight_ns": weight[order].tolist(),
    }
    legend = (
        ("Ordered by total time x (1 - occupancy); work on the first is the most likely to make the program faster.",)
        if n
        else ()
    )
    return View(
        columns=_COLUMNS,
        data=data,
        footers=(*left_out(n, len(order)), *legend, *_left_out_for_good(int(talk.sum()), waiting, whole)),
        notes={
            "": "No kernels that compute were recorded."
            if talk.any()
            else nothing("kernels", result.losses["filter_rejected"])
        },
    )


def _left_out_for_good(kernels: int, time: int, others: int) -> tuple[str, ...]:
    if not kernels:
        return ()
    share = format_percent(100.0 * time / (time + others)) if time + others else ""
    return (
        f"Not ranked: {kernels:,} kernels that communicate ({format_time(time)}, {share} of kernel time). They wait for other "
        "GPUs and the wire: overlap them with compute, or send less.",
    )


def _theoretical(result: Result) -> Float64:
    """Theoretical occupancy 0..1 of each kernel; NaN where its chip is not known or the launch cannot run on it."""
    kernels, configs, devices = result.kernels, result.launch_configs, result.devices
    out = np.full(len(kernels), np.nan)
    if not len(configs):
        return out
    for row, ordinal in enumerate(devices["device"].tolist()):
        chip = chip_limits(*(int(devices[f"compute_capability_{part}"][row]) for part in ("major", "minor")))
        mine = kernels["device"] == ordinal
        if chip is None or not mine.any():
            continue
        threads = configs["block_x"].astype(np.int64) * configs["block_y"] * configs["block_z"]
        found = occupancy(
            chip,
            threads,
            configs["registers_per_thread"],
            configs["static_shared_memory"],
            configs["dynamic_shared_memory"],
            configs["shared_memory_carveout"],
        ).theoretical()
        found = np.where((threads > 0) & (found > 0), found, np.nan)
        out[mine] = found[kernels["config"][mine]]
    return out


def _mean_by_name(ids: Any, value: Float64, n: int) -> Float64:
    """Mean by name of the values that are there."""
    there = ~np.isnan(value)
    count = np.bincount(ids[there], minlength=n)
    total = np.bincount(ids[there], weights=value[there], minlength=n)
    with np.errstate(invalid="ignore"):
        out: Float64 = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return out
