"""Waves of blocks: how often the blocks of a grid fill all SMs, and what the last wave leaves empty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.launch_sizes import LaunchSizes, launch_sizes
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.analysis.work.launch_groups import LaunchGroups, launch_groups
from cuptiprof.data.result import Result


@dataclass(frozen=True)
class Waves:
    """One entry a group of launches that were made alike (``launch_groups``); those with the most time in tails first.

    Attributes:
        groups: what they are; ``order`` says which group each entry is.
        held: blocks of the kernel that one SM holds. limit: what allows no more: WARPS, REGS, SMEM, BLOCKS, joined by a bar.
        waves: blocks of the grid by those that all SMs hold. full: whole ones among them.
        last: how full the last wave is, 0..1.
        efficiency: ``waves`` by their number rounded up, 0..1: how full they are on average.
        tail: time of the last wave of grids of more than one wave, at most, ns.
        lost: part of the duration in which SMs are left empty by the last wave, at most, ns.
        Where SMs or chip are not known (or no block fits), all but the groups are NaN, 0 and "", and so they are of kernels that
        communicate: those take as few SMs as they can.
    """

    groups: LaunchGroups
    order: Int64
    held: Float64
    limit: list[str]
    waves: Float64
    full: Float64
    last: Float64
    efficiency: Float64
    tail: Int64
    lost: Int64


def waves(result: Result, demangle: bool = True) -> Waves:
    """Waves of every kernel: the section LaunchStats of Nsight Compute, and its rule LaunchConfiguration.

    waves = blocks of the grid / (SMs x blocks that an SM holds, by registers, shared memory and threads). The rule says of a kernel of
    f >= 1 full waves and a partial one that the tail costs at most 1 / (1 + f) of its time: all waves taken as equally long, and blocks as
    well. ``tail`` is that of the durations. Of the last wave ``1 - last`` is empty, which makes ``lost``; of a grid of less than one wave
    it is the only one. Kernels that run beside others fill what one alone leaves empty, and blocks in clusters fit less well than
    is assumed: hence "at most", and no more than an estimate.
    """
    groups = launch_groups(result, demangle)
    kernels, total = result.kernels, groups.stats.total
    config, device = kernels["config"][groups.first], kernels["device"][groups.first]
    held, count = (np.full(len(groups.first), np.nan) for _ in range(2))
    sizes = launch_sizes(result)
    for ordinal, size in sizes.items():
        if size.held is None:
            continue
        mine = np.flatnonzero((device == ordinal) & (config < len(size.blocks)))
        fits = size.held.active_blocks[config[mine]]
        held[mine] = np.where(fits > 0, fits, np.nan)
        count[mine] = size.waves[config[mine]]
    full = np.floor(count)
    partial = count > full
    number = full + partial
    last = np.where(partial, count - full, 1.0)
    known = np.isfinite(count) & (count > 0) & ~communicating(kernels)[groups.first]
    last_ns = np.where(known, total / np.where(known, number, 1), 0.0)
    tail = np.rint(np.where(known & partial & (full >= 1), last_ns, 0)).astype(np.int64)
    lost = np.rint(np.where(known, last_ns * (1 - np.where(known, last, 1)), 0)).astype(np.int64)
    order = np.lexsort((groups.first, -total, -lost))

    def shown(values: Float64) -> Float64:
        return np.where(known, values, np.nan)[order]

    return Waves(
        groups=groups,
        order=order,
        held=shown(held),
        limit=[_limit(sizes, int(device[i]), int(config[i])) if known[i] else "" for i in order.tolist()],
        waves=shown(count),
        full=shown(full),
        last=shown(last),
        efficiency=shown(count / np.where(known, number, 1)),
        tail=tail[order],
        lost=lost[order],
    )


def _limit(sizes: dict[int, LaunchSizes], device: int, config: int) -> str:
    held = sizes[device].held
    return held.limiting_factors(config) if held is not None else ""
