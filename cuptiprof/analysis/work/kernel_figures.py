"""Kernels by name, with what they could fill of a GPU, and whether they ran on tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, group_stats
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.launch_sizes import blocks_per_sm, estimated_occupancy
from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.analysis.work.tensor_cores import on_tensor_cores, with_tensor_counter
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class KernelFigures:
    """One entry a name, the longest first.

    Attributes:
        name: as it is shown.
        calls, total, minimum, maximum: int64; times in ns.
        blocks_per_sm, occupancy: means weighted by duration; float64, NaN where neither SMs nor chip are known. Occupancy is
            ``launch_sizes.estimated_occupancy``, percent.
        tensor: time on tensor cores, ns: all of it, nothing, or, where counters say so of some launches, a part.
        counted: a counter said so; else the name does.
    """

    name: list[str]
    calls: Int64
    total: Int64
    minimum: Int64
    maximum: Int64
    blocks_per_sm: Float64
    occupancy: Float64
    tensor: Int64
    counted: Array


def kernel_figures(result: Result, demangle: bool = True) -> KernelFigures:
    """The kernel view of TensorBoard's plugin for torch.profiler: by name, all GPUs together.

    As there a launch whose blocks or occupancy are not known counts as 0 where others of the name are known.
    """
    kernels = result.kernels
    names = kernel_names(kernels, demangle)
    lasted = np.maximum(kernels["end"] - kernels["start"], 0)
    stats = group_stats(names.ids, lasted)
    groups = len(stats.key)
    order = np.lexsort((stats.key, -stats.total))
    tensor = on_tensor_cores(result)
    on_tensor = np.zeros(groups, np.int64)
    if tensor.any():
        found = group_stats(names.ids[tensor], lasted[tensor])
        on_tensor[found.key] = found.total

    def weighted(values: Float64) -> Float64:
        known = np.isfinite(values)
        total = np.bincount(names.ids, np.where(known, values, 0) * lasted, groups)
        whole = np.maximum(stats.total, 1)
        return np.where(np.bincount(names.ids[known], minlength=groups) > 0, total / whole, np.nan)[order]

    return KernelFigures(
        name=[names.names[i] for i in order.tolist()],
        calls=stats.count[order],
        total=stats.total[order],
        minimum=stats.minimum[order],
        maximum=stats.maximum[order],
        blocks_per_sm=weighted(blocks_per_sm(result)),
        occupancy=weighted(estimated_occupancy(result)),
        tensor=on_tensor[order],
        counted=(np.bincount(names.ids[with_tensor_counter(result)], minlength=groups) > 0)[order],
    )
