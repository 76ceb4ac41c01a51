"""How long simulated work takes: a roofline model of a stated chip.

A model, not a measurement:

    kernel = latency + max(operations / (peak * efficiency * fill), bytes / (bandwidth * efficiency))
    copy   = latency + bytes / (link bandwidth * efficiency)

`fill` is wave quantisation: the share of SMs that the last wave of blocks leaves busy, for kernels that run one block an
SM. Peaks are NVIDIA's data sheets
(``data/boards.csv``); latency and efficiencies are assumptions and stand here, each with its reason. Not
modelled: caches, clocks and power, contention of kernels that overlap.
"""

from __future__ import annotations

import math

from cuptiprof.data.chips import Board

KERNEL_LATENCY_NS = 2000
"""Assumption: what the shortest kernel or copy takes; profilers show 1.5 to 3 us for empty kernels on all these chips."""

COMPUTE_EFFICIENCY = {"gemm": 0.75, "conv": 0.6, "attention": 0.5, "other": 0.5}
"""Assumption: share of the peak that a full grid reaches. Large cuBLAS products reach 70 to 80 %, convolutions and
attention less; everything else is bound by memory on these chips anyway."""

MEMORY_EFFICIENCY = {"stream": 0.85, "reduce": 0.75, "random": 0.4}
"""Assumption: share of the DRAM peak: streaming kernels, reductions, and gathers and scatters by index."""

LINK_EFFICIENCY = 0.8
"""Assumption: share of PCIe's raw rate that a copy reaches, as from pinned memory."""


def fill(blocks: int, sms: int) -> float:
    """Share of the SMs at work on average when `blocks` run one an SM, in waves: 132 blocks on 132 SMs give 1, 133 half."""
    return blocks / (math.ceil(blocks / sms) * sms)


def kernel_ns(
    chip: Board,
    *,
    operations: float = 0.0,
    peak: float | None = None,
    efficiency: str = "other",
    blocks: int | None = None,
    moved: float = 0.0,
    access: str = "stream",
) -> int:
    """Modelled duration of one kernel, ns.

    Args:
        operations: arithmetic operations (a multiply-add is two).
        peak: operations/s; default: float32 outside of tensor cores.
        efficiency: key of COMPUTE_EFFICIENCY.
        blocks: where given, the kernel runs one block an SM and loses what its last wave leaves idle.
        moved: bytes from and to DRAM.
        access: key of MEMORY_EFFICIENCY.
    """
    rate = (peak or chip.float32) * COMPUTE_EFFICIENCY[efficiency]
    if blocks:
        rate *= fill(blocks, chip.sms)
    memory = moved / (chip.dram * MEMORY_EFFICIENCY[access])
    return KERNEL_LATENCY_NS + round(1e9 * max(operations / rate, memory))


def copy_ns(chip: Board, moved: float, *, on_device: bool = False) -> int:
    """Modelled duration of a copy of `moved` bytes, ns: over the host link, or within DRAM (read and written)."""
    if on_device:
        return kernel_ns(chip, moved=2 * moved)
    return KERNEL_LATENCY_NS + round(1e9 * moved / (chip.link * LINK_EFFICIENCY))
