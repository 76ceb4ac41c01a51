"""Theoretical occupancy from a launch configuration and the limits of a compute capability.

The algorithm is the CUDA occupancy calculator's (``cuda_occupancy.h``), with the opt-in shared memory limit: with the
48 KB default every kernel that uses more would get 0.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Limits:
    """Limits of one compute capability."""

    max_warps_per_sm: int
    max_blocks_per_sm: int
    smem_per_sm: int
    max_smem_per_block_optin: int
    reserved_smem: int
    smem_granularity: int
    regs_per_sm: int


@lru_cache(maxsize=1)
def _table() -> dict[tuple[int, int], Limits]:
    text = files("cuptiprof").joinpath("data/occupancy_limits.csv").read_text()
    out = {}
    for row in csv.DictReader(text.splitlines()):
        major, minor = row["cc"].split(".")
        out[int(major), int(minor)] = Limits(
            int(row["max_warps_per_sm"]),
            int(row["max_blocks_per_sm"]),
            int(row["smem_per_sm_KiB"]) << 10,
            int(row["max_smem_per_block_optin_KiB"]) << 10,
            int(row["reserved_smem_per_block_B"]),
            int(row["smem_alloc_granularity_B"]),
            int(row["regs_per_sm"]),
        )
    return out


def limits(major: int, minor: int) -> Limits | None:
    """Limits of a compute capability; None if it is unknown."""
    return _table().get((major, minor))


@lru_cache(maxsize=4096)
def active_blocks(cc: tuple[int, int], threads: int, registers: int, shared_memory: int) -> int:
    """Blocks that fit on one SM at once; 0 when none does or the compute capability is unknown."""
    lim = limits(*cc)
    if lim is None or not 0 < threads <= 1024:
        return 0
    warps = -(-threads // 32)
    by_warps = lim.max_warps_per_sm // warps
    regs_per_warp = -(-registers * 32 // 256) * 256
    by_regs = lim.max_blocks_per_sm
    if regs_per_warp:
        if regs_per_warp * (-(-warps // 4) * 4) > lim.regs_per_sm:
            return 0
        by_regs = (lim.regs_per_sm // 4 // regs_per_warp) * 4 // warps
    if shared_memory > lim.max_smem_per_block_optin:
        return 0
    per_block = -(-(shared_memory + lim.reserved_smem) // lim.smem_granularity) * lim.smem_granularity
    by_smem = lim.smem_per_sm // per_block if per_block else lim.max_blocks_per_sm
    return min(by_warps, by_regs, by_smem, lim.max_blocks_per_sm)


def estimated_achieved_occupancy(
    cc: tuple[int, int], sms: int, blocks: int, threads: int, registers: int, shared_memory: int
) -> float:
    """The TensorBoard plugin's estimate, percent: min(active blocks, blocks / SMs) * threads / max threads per SM."""
    lim = limits(*cc)
    if lim is None or sms <= 0:
        return 0.0
    resident = min(float(active_blocks(cc, threads, registers, shared_memory)), blocks / sms)
    return 100.0 * resident * threads / (lim.max_warps_per_sm * 32)
