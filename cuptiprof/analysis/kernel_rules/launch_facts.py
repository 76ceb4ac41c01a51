"""What is known of a measured launch besides its counters: size, resources, waves, theoretical occupancy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Float64, Int64, join_keys, join_launches
from cuptiprof.analysis.kernel_rules import rules
from cuptiprof.analysis.kernel_rules.l2_rules import CAPABILITY
from cuptiprof.data.occupancy import UNLIMITED, Occupancy, chip_limits, occupancy
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


@dataclass(frozen=True)
class LaunchFacts:
    """Columns over the rows of ``metric_ranges``, float64, NaN where unknown (no kernel record, an unknown chip).

    ``facts`` are those that rules use, ``launch`` and ``occupancy`` what the sections of these names show: label ->
    (unit, values).
    """

    facts: dict[str, Float64]
    launch: dict[str, tuple[str, Float64]]
    occupancy: dict[str, tuple[str, Float64]]


def kernel_of_range(result: Result) -> Int64:
    """Row in ``kernels`` of the (first) launch behind each row of ``metric_ranges``; -1: none was recorded."""
    kernels, ranges = result.kernels, result.metric_ranges
    out = np.full(len(ranges), -1, np.int64)
    for rows in (join_keys(ranges, kernels), join_launches(ranges, kernels)):
        found = np.flatnonzero(rows >= 0)[::-1]  # of several kernels the first is to stay
        out[rows[found]] = found
    return out


def launch_facts(result: Result) -> LaunchFacts:
    """Facts of all rows of ``metric_ranges``."""
    ranges, kernels = result.metric_ranges, result.kernels
    which = kernel_of_range(result)
    known = which >= 0

    def of_kernel(column: str) -> Float64:
        out = np.full(len(which), np.nan)
        out[known] = kernels[column][which[known]]
        return out

    def product(what: str) -> Float64:
        values = ranges[f"{what}_x"].astype(float) * ranges[f"{what}_y"] * ranges[f"{what}_z"]
        return np.where(values > 0, values, np.nan)

    grid, block = product("grid"), product("block")
    registers, static, dynamic = (
        of_kernel(column) for column in ("registers_per_thread", "static_shared_memory", "dynamic_shared_memory")
    )
    carveout = of_kernel("shared_memory_carveout")
    n = len(which)
    sms, theoretical, warps, waves, capability = (np.full(n, np.nan) for _ in range(5))
    limits = {label: np.full(n, np.nan) for label in _LIMITS}
    devices = result.devices
    for ordinal, count, major, minor in zip(
        *(devices[c].tolist() for c in ("device", "num_multiprocessors", "compute_capability_major", "compute_capability_minor")),
        strict=True,
    ):  # fmt: skip
        mine = ranges["device"] == ordinal
        sms[mine] = count if count > 0 else np.nan
        capability[mine] = major + minor / 10
        chip = chip_limits(major, minor)
        rows = np.flatnonzero(mine & known & (block > 0))
        if chip is None or not len(rows):
            continue
        found = occupancy(
            chip, *(values[rows].astype(np.int64) for values in (block, registers, static, dynamic, carveout))
        )
        theoretical[rows] = 100 * found.theoretical()
        warps[rows] = found.active_blocks * found.warps_per_block / chip.sub_partitions
        with np.errstate(divide="ignore", invalid="ignore"):
            waves[rows] = np.where(found.active_blocks > 0, grid[rows] / (sms[rows] * found.active_blocks), np.nan)
        for label, limit in _limits(found).items():
            limits[label][rows] = limit
    return LaunchFacts(
        facts={rules.GRID: grid, rules.BLOCK: block, rules.SMS: sms, rules.WAVES: waves,
               rules.THEORETICAL: theoretical, rules.MAX_WARPS: warps, CAPABILITY: capability},
        launch={
            "Grid Size": ("block", grid),
            "Block Size": ("thread", block),
            "Threads": ("thread", grid * block),
            "Registers Per Thread": ("register", registers),
            "Static Shared Memory Per Block": ("byte", static),
            "Dynamic Shared Memory Per Block": ("byte", dynamic),
            "# SMs": ("SM", sms),
            "Waves Per SM": ("ratio", waves),
        },
        occupancy={
            "Theoretical Occupancy": ("%", theoretical),
            **{label: ("block", values) for label, values in limits.items()},
        },
    )  # fmt: skip


_LIMITS = ("Block Limit SM", "Block Limit Registers", "Block Limit Shared Mem", "Block Limit Warps")


def _limits(found: Occupancy) -> dict[str, Array]:
    columns = (found.limit_blocks, found.limit_registers, found.limit_shared_memory, found.limit_warps)
    return {
        label: np.where(column == UNLIMITED, np.nan, column.astype(float))
        for label, column in zip(_LIMITS, columns, strict=True)
    }
