"""How much of a GPU each launch could fill: blocks per SM, the blocks that an SM can hold, the occupancy that comes of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.data.occupancy import ChipLimits, Int64, Occupancy, chip_limits, occupancy
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table

_MOST_THREADS = 2**31  # of a block that no GPU has: what a damaged file says must not overflow


@dataclass(frozen=True)
class LaunchSizes:
    """What each row of ``launch_configs`` is on one GPU.

    Attributes:
        sms: multiprocessors. chip: limits of its compute capability.
        blocks: blocks of the grid; float64. threads: threads of a block; int64.
        held: what an SM can hold of each; None: the chip is not known.
    """

    sms: int
    chip: ChipLimits | None
    blocks: Float64
    threads: Int64
    held: Occupancy | None

    @property
    def blocks_per_sm(self) -> Float64:
        """Blocks of the grid by SMs."""
        return self.blocks / self.sms

    @property
    def waves(self) -> Float64:
        """Blocks of the grid by those that all SMs hold; NaN where the chip is not known or no block fits."""
        if self.held is None:
            return np.full(len(self.blocks), np.nan)
        fits = self.held.active_blocks
        return np.where(fits > 0, self.blocks / (self.sms * np.maximum(fits, 1)), np.nan)

    def achieved(self) -> Float64:
        """Kineto's "est. achieved occupancy %", 0..100, whole; NaN where the chip is not known.

        100 x min(blocks that an SM can hold, blocks per SM) x threads a block / most threads of an SM. In single precision, as Kineto
        computes it, so that halves are rounded the same way. How many an SM can hold is asked with the shared memory that a kernel
        may opt in to: Kineto asks for the default limit and has 0 for every kernel with more than 48 KiB.
        """
        if self.chip is None or self.held is None:
            return np.full(len(self.blocks), np.nan)
        resident = np.minimum(self.held.active_blocks.astype(np.float32), self.blocks_per_sm.astype(np.float32))
        achieved = resident * self.threads.astype(np.float32) / np.float32(self.chip.max_threads_per_sm)
        rounded: Float64 = np.floor(100 * achieved.astype(np.float64) + 0.5)
        return rounded


def launch_sizes(result: Result) -> dict[int, LaunchSizes]:
    """By ordinal of each GPU of which the number of SMs is known."""
    devices, configs = result.devices, result.launch_configs
    columns = ("device", "num_multiprocessors", "compute_capability_major", "compute_capability_minor")
    return {
        ordinal: _on(configs, sms, chip_limits(major, minor) if nvidia else None)
        for ordinal, sms, major, minor, nvidia in zip(
            *(devices[c].tolist() for c in columns), is_nvidia(devices), strict=True
        )
        if sms
    }


def is_nvidia(devices: Table) -> list[bool]:
    """Of each row whether compute capability and warps are NVIDIA's: files of other makers' GPUs have numbers there as well."""
    return [
        major > 0 and threads in (0, 32) and not str(name).startswith("AMD")
        for name, threads, major in zip(
            *(devices[c].tolist() for c in ("name", "threads_per_warp", "compute_capability_major")), strict=True
        )
    ]


def _on(configs: Table, sms: int, chip: ChipLimits | None) -> LaunchSizes:
    blocks, of_block = (
        np.prod([configs[f"{what}_{axis}"].astype(np.float64) for axis in "xyz"], axis=0) for what in ("grid", "block")
    )
    threads = np.minimum(of_block, _MOST_THREADS).astype(np.int64)
    held = None
    if chip is not None:
        held = occupancy(
            chip,
            threads,
            configs["registers_per_thread"],
            configs["static_shared_memory"],
            configs["dynamic_shared_memory"],
            configs["shared_memory_carveout"],
        )
    return LaunchSizes(sms, chip, blocks, threads, held)


def blocks_per_sm(result: Result) -> Float64:
    """Of each kernel: blocks of its grid by SMs of its GPU; NaN where the SMs are not known."""
    return of_kernels(result, {device: sizes.blocks_per_sm for device, sizes in launch_sizes(result).items()})


def estimated_occupancy(result: Result) -> Float64:
    """Of each kernel :meth:`LaunchSizes.achieved`."""
    return of_kernels(result, {device: sizes.achieved() for device, sizes in launch_sizes(result).items()})


def of_kernels(result: Result, values: dict[int, Float64]) -> Float64:
    """Of each kernel what its configuration has on its GPU; NaN where nothing is known of either.

    Args:
        values: by device, one value a row of ``launch_configs``.
    """
    config, device = result.kernels["config"], result.kernels["device"]
    if len(values) == 1 and len(config):
        ((ordinal, known),) = values.items()
        if (device == ordinal).all() and int(config.max()) < len(known):
            return known[config]
    out = np.full(len(config), np.nan)
    for ordinal, known in values.items():
        mine = np.flatnonzero((device == ordinal) & (config < len(known)))
        out[mine] = known[config[mine]]
    return out
