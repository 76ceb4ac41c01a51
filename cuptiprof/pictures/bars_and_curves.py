"""Pictures of a run that are bars or curves: memory, occupancy, steps, the longest kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.allocators.allocations import allocations
from cuptiprof.analysis.allocators.allocator_memory import devices, memory_timeline
from cuptiprof.analysis.arrays.step_curves import step_curves
from cuptiprof.analysis.training_steps.step_breakdown import ROLES, step_breakdown
from cuptiprof.analysis.training_steps.step_outliers import step_outliers
from cuptiprof.analysis.utilization.occupancy_spread import WIDTH, occupancy_spread
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.analysis.work.kernel_figures import kernel_figures
from cuptiprof.data.enums import MEMORY_KINDS
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.pictures.canvas import new_figure, shown, time_unit
from cuptiprof.text.short_names import shorten

MOST_POINTS = 2000
MOST_KERNELS = 15
_NAME = 60  # characters of a kernel's name
_MIB = 1 << 20


def memory(result: Result) -> Any:
    """Bytes in use over time: of PyTorch's caching allocator, and by the records of CUDA's own calls."""
    origin = origin_ns(result)
    curves = []
    for device in devices(result):
        timeline = memory_timeline(result, device)
        if len(timeline.time):
            found = step_curves([(timeline.time, [timeline.allocated, timeline.reserved])], MOST_POINTS)
            names = (f"GPU {device}: allocated by PyTorch", f"GPU {device}: reserved by PyTorch")
            curves += [(name, found.time, values) for name, values in zip(names, found.values, strict=True)]
    for device, kind, pool in allocations(result.memory).pools():
        time, level = pool.levels()
        found = step_curves([(time, [level])], MOST_POINTS)
        curves.append(
            (f"GPU {device}: {MEMORY_KINDS.get(kind, 'Unknown')}, by calls of CUDA", found.time, found.values[0])
        )
    if not curves:
        raise ResultError("no memory was recorded", hint='activities=["memory", ...], or "allocator" for PyTorch\'s')
    figure = new_figure(9, 4)
    axes = figure.add_subplot()
    unit, scale = time_unit(float(max(abs(int(time[-1]) - origin) for _, time, _ in curves)))
    for name, time, values in curves:
        axes.step((time - origin) / scale, values / _MIB, where="post", label=shown(name))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("memory (MiB)")
    axes.grid(alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    return figure


def occupancy(result: Result) -> Any:
    """Share of kernel time and of launches by estimated occupancy."""
    found = occupancy_spread(result)
    if found is None:
        raise ResultError("occupancy is not known: the run has no kernels, or their GPU is not described")
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    for name, values, color in (("kernel time", found.time, "C0"), ("launches", found.launches, "C1")):
        share = 100.0 * values / max(int(values.sum()), 1)
        if color == "C0":
            axes.bar(found.low, share, 0.9 * WIDTH, align="edge", color=color, label=f"of {name}")
        else:
            axes.plot(found.low + 0.45 * WIDTH, share, "o", color=color, fillstyle="none", label=f"of {name}")
    axes.set_xlim(0, 100)
    axes.set_xlabel("estimated occupancy (%)")
    axes.set_ylabel("share (%)")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize="small")
    return figure


def steps(result: Result) -> Any:
    """What the time of each training step went to; those that stand out have a mark."""
    found = step_breakdown(result)
    if not len(found.steps):
        raise ResultError("no steps were recorded", hint="prof.step() ends one")
    outliers, _ = step_outliers(found.total)
    figure = new_figure(9, 4)
    axes = figure.add_subplot()
    unit, scale = time_unit(float(found.total.max()))
    at, below = np.arange(len(found.steps)), np.zeros(len(found.steps))
    for place, role in enumerate((*ROLES, "other")):
        if found.roles[role].any():
            height = found.roles[role] / scale
            axes.bar(at, height, 0.8, below, color=f"C{place}", label=role.replace("_", " "))
            below = below + height
    if len(outliers):
        axes.plot(outliers, found.total[outliers] / scale, "v", color="0.2", label="stands out")
    axes.set_xlabel("step")
    axes.set_ylabel(f"time ({unit})")
    if len(at) <= 30:
        axes.set_xticks(at, [shown(name) for name in found.steps.name])
    figure.legend(fontsize="small", loc="outside lower center", ncols=5)
    return figure


def kernels(result: Result) -> Any:
    """The kernels that took longest."""
    found = kernel_figures(result)
    if not found.name:
        raise ResultError("no kernels were recorded")
    count = min(len(found.name), MOST_KERNELS)
    whole = max(int(found.total.sum()), 1)
    unit, scale = time_unit(float(found.total[0]))
    figure = new_figure(10, 0.8 + 0.32 * count)
    axes = figure.add_subplot()
    at = np.arange(count)[::-1]
    bars = axes.barh(at, found.total[:count] / scale, 0.75)
    labels = [f"{100 * found.total[i] / whole:.1f} %, {found.calls[i]:,}x" for i in range(count)]
    axes.bar_label(bars, labels, padding=3, fontsize="small")
    short = shorten(found.name[:count], _NAME)
    axes.set_yticks(at, [shown(short[name]) for name in found.name[:count]], fontsize="small")
    axes.set_xlabel(f"GPU time ({unit})")
    axes.margins(x=0.18)
    return figure
