"""Theoretical occupancy: how many blocks of a kernel an SM can hold at once.

The same arithmetic as NVIDIA's ``cuda_occupancy.h`` (CUDA 13.0) in its opt-in mode, that is, with the kernel's own
dynamic shared memory allowed up to the limit of the chip. (Its default mode gives 0 blocks, hence 0 %, for every kernel
with more than 48 KiB of shared memory.) Limits of the chips are in ``data/compute_capabilities.csv``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.data.chips import parsed, rows_of

Int64 = npt.NDArray[np.int64]

WARP_SIZE = 32
UNLIMITED = np.iinfo(np.int32).max  # INT_MAX, as cuda_occupancy.h says "this resource sets no limit"
NO_CARVEOUT = 255  # launch_configs.shared_memory_carveout: none requested


@dataclass(frozen=True)
class ChipLimits:
    """What an SM of one compute capability has; shared memory in bytes."""

    max_threads_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_threads_per_block: int
    registers_per_sm: int
    max_registers_per_block: int
    max_registers_per_thread: int
    register_unit_per_warp: int
    sub_partitions: int
    shared_memory_per_sm: int
    max_shared_memory_per_block: int
    reserved_shared_memory_per_block: int
    shared_memory_unit: int
    carveouts: tuple[int, ...]


@dataclass(frozen=True)
class Occupancy:
    """Result for each launch configuration; int64 arrays of one length.

    ``limit_*`` are blocks per SM that each resource allows (UNLIMITED: it does not matter), ``active_blocks`` is their
    minimum, ``allocated_*`` what a block takes: registers, and shared memory in bytes with what the system reserves.
    """

    active_blocks: Int64
    warps_per_block: Int64
    limit_warps: Int64
    limit_registers: Int64
    limit_shared_memory: Int64
    limit_blocks: Int64
    allocated_registers: Int64
    allocated_shared_memory: Int64
    max_warps_per_sm: int

    def theoretical(self) -> npt.NDArray[np.float64]:
        """Active warps over the maximum, 0..1."""
        return self.active_blocks * self.warps_per_block / self.max_warps_per_sm

    def limiting_factors(self, i: int) -> str:
        """The resources that set the limit of configuration ``i``, joined by a bar as Kineto does."""
        limits = {
            "WARPS": self.limit_warps,
            "REGS": self.limit_registers,
            "SMEM": self.limit_shared_memory,
            "BLOCKS": self.limit_blocks,
        }
        return "|".join(name for name, limit in limits.items() if limit[i] == self.active_blocks[i])


def chip_limits(major: int, minor: int) -> ChipLimits | None:
    """Limits of compute capability ``major.minor``; None if no chip of that generation is known.

    An unknown minor version gets the limits of the highest known one below it, or of the lowest one.
    """
    known = sorted(cc for cc in _table() if cc[0] == major)
    if not known:
        return None
    below = [cc for cc in known if cc[1] <= minor]
    return _table()[below[-1] if below else known[0]]


@functools.lru_cache(maxsize=1)
def _table() -> dict[tuple[int, int], ChipLimits]:
    out = {}
    for row in rows_of("compute_capabilities.csv"):
        out[parsed(row["cc"])] = ChipLimits(
            max_threads_per_sm=int(row["max_threads_per_sm"]),
            max_warps_per_sm=int(row["max_warps_per_sm"]),
            max_blocks_per_sm=int(row["max_blocks_per_sm"]),
            max_threads_per_block=int(row["max_threads_per_block"]),
            registers_per_sm=int(row["regs_per_sm"]),
            max_registers_per_block=int(row["max_regs_per_block"]),
            max_registers_per_thread=int(row["max_regs_per_thread"]),
            register_unit_per_warp=int(row["reg_alloc_unit_per_warp"]),
            sub_partitions=int(row["sub_partitions"]),
            shared_memory_per_sm=int(row["smem_per_sm_KiB"]) << 10,
            max_shared_memory_per_block=int(row["max_smem_per_block_optin_KiB"]) << 10,
            reserved_shared_memory_per_block=int(row["reserved_smem_per_block_B"]),
            shared_memory_unit=int(row["smem_alloc_granularity_B"]),
            carveouts=tuple(int(size) << 10 for size in row["carveouts_KiB"].split()),
        )
    return out


def occupancy(
    chip: ChipLimits,
    threads: npt.ArrayLike,
    registers: npt.ArrayLike,
    static_shared_memory: npt.ArrayLike,
    dynamic_shared_memory: npt.ArrayLike,
    carveout: npt.ArrayLike = NO_CARVEOUT,
) -> Occupancy:
    """Occupancy of launch configurations; arguments broadcast.

    Args:
        threads: threads per block (>= 1).
        registers: registers per thread.
        static_shared_memory, dynamic_shared_memory: bytes per block.
        carveout: requested share of shared memory in percent (0..100), or 255 for none.
    """
    given = np.broadcast_arrays(
        *(
            np.atleast_1d(np.asarray(value, np.int64))
            for value in (threads, registers, static_shared_memory, dynamic_shared_memory, carveout)
        )
    )
    block_threads, regs, static, dynamic, share = given
    warps = -(-np.maximum(block_threads, 1) // WARP_SIZE)

    limit_warps = np.where(block_threads > chip.max_threads_per_block, 0, chip.max_warps_per_sm // warps)

    registers_per_warp = _round_up(regs * WARP_SIZE, chip.register_unit_per_warp)
    warps_per_partition = (chip.registers_per_sm // chip.sub_partitions) // np.maximum(registers_per_warp, 1)
    fits = (registers_per_warp * _round_up(warps, chip.sub_partitions) <= chip.max_registers_per_block) & (
        regs <= chip.max_registers_per_thread
    )
    limit_registers = np.where(
        registers_per_warp == 0,
        UNLIMITED,
        np.where(fits, warps_per_partition * chip.sub_partitions // warps, 0),
    )

    used = _round_up(static + chip.reserved_shared_memory_per_block + dynamic, chip.shared_memory_unit)
    sizes = np.asarray(chip.carveouts, np.int64)
    wanted = np.where(share > 100, chip.shared_memory_per_sm, share * chip.shared_memory_per_sm // 100)
    # A carve-out is raised to the next size the chip has, and further if not even one block would fit.
    pool = sizes[np.searchsorted(sizes, np.minimum(np.maximum(wanted, used), sizes[-1]))]
    allowed = chip.max_shared_memory_per_block + chip.reserved_shared_memory_per_block
    limit_shared = np.where(used > allowed, 0, np.where(used == 0, UNLIMITED, pool // np.maximum(used, 1)))

    limit_blocks = np.full(len(warps), chip.max_blocks_per_sm, np.int64)
    active = np.minimum.reduce([limit_warps, limit_registers, limit_shared, limit_blocks])
    return Occupancy(
        active_blocks=active,
        warps_per_block=warps,
        limit_warps=limit_warps,
        limit_registers=limit_registers,
        limit_shared_memory=limit_shared,
        limit_blocks=limit_blocks,
        allocated_registers=registers_per_warp * warps,
        allocated_shared_memory=used,
        max_warps_per_sm=chip.max_warps_per_sm,
    )


def _round_up(value: Int64, unit: int) -> Int64:
    rounded: Int64 = -(-value // unit) * unit
    return rounded
