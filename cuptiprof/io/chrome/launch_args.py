"""The arguments of a kernel slice that its launch configuration fixes, written once per configuration and device."""

from __future__ import annotations

import math

import numpy as np

from cuptiprof.data.occupancy import UNLIMITED, WARP_SIZE, Occupancy, chip_limits, occupancy
from cuptiprof.data.result import Result


class LaunchArgs:
    """``text(device, config)`` gives the JSON members, without braces."""

    def __init__(self, result: Result) -> None:
        self._configs = result.tables["launch_configs"]
        devices = result.tables["devices"]
        self._devices = {int(ordinal): row for row, ordinal in enumerate(devices["device"].tolist())}
        self._table = devices
        self._occupancy: dict[int, Occupancy | None] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def text(self, device: int, config: int) -> str:
        key = (device, config)
        if key not in self._texts:
            self._texts[key] = self._text(device, config)
        return self._texts[key]

    def _text(self, device: int, config: int) -> str:
        c = self._configs
        grid = [int(c[f"grid_{axis}"][config]) for axis in "xyz"]
        block = [int(c[f"block_{axis}"][config]) for axis in "xyz"]
        cluster = [int(c[f"cluster_{axis}"][config]) for axis in "xyz"]
        shared = int(c["static_shared_memory"][config]) + int(c["dynamic_shared_memory"][config])
        threads = block[0] * block[1] * block[2]
        parts = [
            f'"registers per thread":{int(c["registers_per_thread"][config])}',
            f'"shared memory":{shared}',
        ]
        row = self._devices.get(device)
        sms = int(self._table["num_multiprocessors"][row]) if row is not None else 0
        blocks_per_sm = grid[0] * grid[1] * grid[2] / sms if sms else None
        if blocks_per_sm is not None:
            parts.append(f'"blocks per SM":{round(blocks_per_sm, 6)!r}')
            parts.append(f'"warps per SM":{round(blocks_per_sm * threads / WARP_SIZE, 6)!r}')
        parts += [f'"grid":{grid}', f'"block":{block}']
        if any(cluster):
            parts.append(f'"cluster":{cluster}')
        found = self._of_device(device, row)
        if found is not None and blocks_per_sm is not None and row is not None:
            active = int(found.active_blocks[config])
            major = int(self._table["compute_capability_major"][row])
            chip = chip_limits(major, int(self._table["compute_capability_minor"][row]))
            assert chip is not None
            # In single precision, as Kineto computes it, so that halves are rounded the same way.
            resident = min(np.float32(active), np.float32(blocks_per_sm))
            achieved = float(resident * np.float32(threads) / np.float32(chip.max_threads_per_sm))
            parts.append(f'"est. achieved occupancy %":{math.floor(100 * achieved + 0.5)}')
            limits = {
                "activeBlocksPerMultiprocessor": active,
                "blockLimitRegs": int(found.limit_registers[config]),
                "blockLimitSharedMem": int(found.limit_shared_memory[config]),
                "blockLimitWarps": int(found.limit_warps[config]),
                "blockLimitBlocks": int(found.limit_blocks[config]),
                "allocatedRegistersPerBlock": int(found.allocated_registers[config]),
                "allocatedSharedMemPerBlock": int(found.allocated_shared_memory[config]),
            }
            members = [f'"{key}":{value}' for key, value in limits.items() if value != UNLIMITED]
            members.append(f'"limitingFactors":"{found.limiting_factors(config)}"')
            parts.append(f'"occupancy":{{{",".join(members)}}}')
        return ",".join(parts)

    def _of_device(self, device: int, row: int | None) -> Occupancy | None:
        """Occupancy of all configurations on a device; None if its chip is not known."""
        if device not in self._occupancy:
            c = self._configs
            chip = (
                chip_limits(
                    int(self._table["compute_capability_major"][row]),
                    int(self._table["compute_capability_minor"][row]),
                )
                if row is not None
                else None
            )
            self._occupancy[device] = (
                occupancy(
                    chip,
                    c["block_x"].astype("i8") * c["block_y"] * c["block_z"],
                    c["registers_per_thread"],
                    c["static_shared_memory"],
                    c["dynamic_shared_memory"],
                    c["shared_memory_carveout"],
                )
                if chip is not None
                else None
            )
        return self._occupancy[device]
