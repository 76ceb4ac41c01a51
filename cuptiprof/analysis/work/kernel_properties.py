"""Kernels by what their launches are made of, and by the operator that launched them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof import _core
from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.counter_values.kernel_counters import Float64, match
from cuptiprof.analysis.counter_values.launch_sizes import blocks_per_sm, estimated_occupancy
from cuptiprof.analysis.work.launch_groups import LaunchGroups, launch_groups
from cuptiprof.analysis.work.tensor_cores import is_eligible, on_tensor_cores
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table


@dataclass(frozen=True)
class KernelProperties:
    """One entry a kernel, way to launch it, GPU and operator; the longest first.

    Attributes:
        groups: what they are; ``order`` says which group each entry is.
        operator: innermost PyTorch operator that made the launches; "" where there was none.
        eligible: tensor cores could do what the operator does (``tensor_cores.is_eligible``).
        tensor: time on tensor cores, ns.
        blocks_per_sm, occupancy: of each launch, percent the latter; NaN where SMs or chip are not known.
    """

    groups: LaunchGroups
    order: Int64
    operator: list[str]
    eligible: list[bool]
    tensor: Int64
    blocks_per_sm: Float64
    occupancy: Float64


def kernel_properties(result: Result, demangle: bool = True) -> KernelProperties:
    """The kernel view of TensorBoard's plugin for torch.profiler, grouped by "Kernel Properties + Op Name"."""
    number, names = launching_operators(result, result.kernels)
    groups = launch_groups(result, demangle, number)
    order = groups.order(groups.stats.total)
    first = groups.first[order]
    kernels = result.kernels
    in_tensor = np.where(on_tensor_cores(result), np.maximum(kernels["end"] - kernels["start"], 0), 0)
    operator = [names[i] for i in number[first].tolist()]
    return KernelProperties(
        groups=groups,
        order=order,
        operator=operator,
        eligible=[is_eligible(name) for name in operator],
        tensor=sum_by_group(groups.which, in_tensor, len(first))[order],
        blocks_per_sm=blocks_per_sm(result)[first],
        occupancy=estimated_occupancy(result)[first],
    )


def launching_operators(result: Result, work: Table, rows: Array | slice = slice(None)) -> tuple[Int64, list[str]]:
    """Of rows of kernels, copies or sets the number of their innermost operator's name, and the names; "" for those of none.

    By the row in ``operators`` where there is one; else it is the last of the names that were open at the launch.
    """
    operators, strings = result.operators, work.strings
    row = match(work["operator_instance"][rows], operators["instance"])
    path = work.codes("operator")[rows].astype(np.int64)
    code = np.full(len(path), -1, np.int64)
    code[row >= 0] = operators.codes("name")[row[row >= 0]]
    # Names and paths are told apart by the sign.
    used, which = renumbered(np.where(code >= 0, code, -1 - path))
    known: dict[str, int] = {}
    numbers = []
    for value in used.tolist():
        name = str(strings[value]) if value >= 0 else (_core.split_region_path(str(strings[-1 - value])) or [""])[-1]
        numbers.append(known.setdefault(name, len(known)))
    return np.asarray(numbers, np.int64)[which], list(known)
