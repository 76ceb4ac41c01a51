"""How much of a GPU each launch could fill: blocks per SM, and the occupancy that comes of it."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.kernel_counters import Float64
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.occupancy import chip_limits, occupancy
from cuptiprof.data.result import Result


def blocks_per_sm(result: Result) -> Float64:
    """Of each kernel: blocks of its grid by SMs of its GPU; NaN where the SMs are not known."""
    return _by_launch(result)[0]


def estimated_occupancy(result: Result) -> Float64:
    """Of each kernel Kineto's "est. achieved occupancy %", 0..100; NaN where the chip is not known.

    100 x min(blocks that an SM can hold, blocks per SM) x threads a block / most threads of an SM, rounded to whole percent as in the files
    that Kineto writes. How many an SM can hold is asked with the shared memory that a kernel may opt in to: Kineto asks for the default limit and
    has 0 for every kernel with more than 48 KiB.
    """
    return _by_launch(result)[1]


def _by_launch(result: Result) -> tuple[Float64, Float64]:
    kernels, configs, devices = result.kernels, result.launch_configs, result.devices
    pairs, which = distinct_rows(kernels["device"], kernels["config"])
    blocks, percent = (np.full(len(pairs), np.nan) for _ in range(2))
    row_of = {ordinal: row for row, ordinal in enumerate(devices["device"].tolist())}
    of_grid, of_block = (
        np.prod([configs[f"{what}_{axis}"].astype(np.float64) for axis in "xyz"], axis=0) for what in ("grid", "block")
    )
    for device in np.unique(pairs[:, 0]).tolist():
        row = row_of.get(device)
        mine = np.flatnonzero((pairs[:, 0] == device) & (pairs[:, 1] < len(configs)))
        config = pairs[mine, 1]
        sms = int(devices["num_multiprocessors"][row]) if row is not None else 0
        if row is None or not sms or not len(mine):
            continue
        blocks[mine] = of_grid[config] / sms
        chip = chip_limits(*(int(devices[f"compute_capability_{part}"][row]) for part in ("major", "minor")))
        if chip is None:
            continue
        threads = np.minimum(of_block[config], 2**31)
        found = occupancy(
            chip,
            threads.astype(np.int64),
            configs["registers_per_thread"][config],
            configs["static_shared_memory"][config],
            configs["dynamic_shared_memory"][config],
            configs["shared_memory_carveout"][config],
        )
        # In single precision, as Kineto computes it, so that halves are rounded the same way.
        resident = np.minimum(found.active_blocks.astype(np.float32), blocks[mine].astype(np.float32))
        achieved = resident * threads.astype(np.float32) / np.float32(chip.max_threads_per_sm)
        percent[mine] = np.floor(100 * achieved.astype(np.float64) + 0.5)
    return blocks[which], percent[which]
