"""The arguments of a kernel slice that its launch configuration fixes, written once per configuration and device."""

from __future__ import annotations

import math

from cuptiprof.analysis.kernel_counters import Float64
from cuptiprof.analysis.launch_sizes import launch_sizes
from cuptiprof.data.occupancy import UNLIMITED, WARP_SIZE, Occupancy
from cuptiprof.data.result import Result


class LaunchArgs:
    """``text(device, config)`` gives the JSON members, without braces."""

    def __init__(self, result: Result) -> None:
        self._configs = result.tables["launch_configs"]
        self._sizes = launch_sizes(result)
        self._achieved: dict[int, Float64] = {device: sizes.achieved() for device, sizes in self._sizes.items()}
        self._texts: dict[tuple[int, int], str] = {}

    def text(self, device: int, config: int) -> str:
        key = (device, config)
        if key not in self._texts:
            self._texts[key] = self._text(device, config)
        return self._texts[key]

    def _text(self, device: int, config: int) -> str:
        c = self._configs
        grid, block, cluster = (
            [int(c[f"{what}_{axis}"][config]) for axis in "xyz"] for what in ("grid", "block", "cluster")
        )
        shared = int(c["static_shared_memory"][config]) + int(c["dynamic_shared_memory"][config])
        parts = [
            f'"registers per thread":{int(c["registers_per_thread"][config])}',
            f'"shared memory":{shared}',
        ]
        sizes = self._sizes.get(device)
        if sizes is not None:
            per_sm = grid[0] * grid[1] * grid[2] / sizes.sms
            parts.append(f'"blocks per SM":{round(per_sm, 6)!r}')
            parts.append(f'"warps per SM":{round(per_sm * math.prod(block) / WARP_SIZE, 6)!r}')
        parts += [f'"grid":{grid}', f'"block":{block}']
        if any(cluster):
            parts.append(f'"cluster":{cluster}')
        if sizes is not None and sizes.held is not None:
            parts += _occupancy(sizes.held, self._achieved[device], config)
        return ",".join(parts)


def _occupancy(held: Occupancy, achieved: Float64, config: int) -> list[str]:
    limits = {
        "activeBlocksPerMultiprocessor": held.active_blocks,
        "blockLimitRegs": held.limit_registers,
        "blockLimitSharedMem": held.limit_shared_memory,
        "blockLimitWarps": held.limit_warps,
        "blockLimitBlocks": held.limit_blocks,
        "allocatedRegistersPerBlock": held.allocated_registers,
        "allocatedSharedMemPerBlock": held.allocated_shared_memory,
    }
    members = [f'"{key}":{value}' for key, column in limits.items() if (value := int(column[config])) != UNLIMITED]
    members.append(f'"limitingFactors":"{held.limiting_factors(config)}"')
    return [f'"est. achieved occupancy %":{int(achieved[config])}', f'"occupancy":{{{",".join(members)}}}']
