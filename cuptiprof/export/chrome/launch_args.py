"""The arguments of a kernel slice that its launch configuration fixes, written once per configuration and device."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.launch_sizes import LaunchSizes, launch_sizes
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.occupancy import UNLIMITED, WARP_SIZE
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.json_text import Events


def launch_members(result: Result, kernels: Table) -> tuple[Array, list[str]]:
    """JSON members by code, with a comma before each, and the code of each kernel."""
    configs, sizes = result.tables["launch_configs"], launch_sizes(result)
    pairs, which = distinct_rows(kernels["device"], kernels["config"])
    texts = [""] * len(pairs)
    for device in renumbered(pairs[:, 0])[0].tolist():
        mine = np.flatnonzero(pairs[:, 0] == device)
        for at, text in zip(mine.tolist(), _members(configs, pairs[mine, 1], sizes.get(device)), strict=True):
            texts[at] = text
    return which, texts


def _members(configs: Table, rows: Int64, sizes: LaunchSizes | None) -> list[str]:
    events = Events(len(rows))
    shared = configs["static_shared_memory"][rows].astype(np.int64) + configs["dynamic_shared_memory"][rows]
    events.number('\n,"registers per thread":', configs["registers_per_thread"][rows])
    events.number(',"shared memory":', shared)
    if sizes is not None:
        events.number(',"blocks per SM":', _six(sizes.blocks_per_sm[rows]))
        events.number(',"warps per SM":', _six(sizes.blocks_per_sm[rows] * sizes.threads[rows] / WARP_SIZE))
    clustered = (configs["cluster_x"] | configs["cluster_y"] | configs["cluster_z"])[rows] > 0
    for what, shown in (("grid", None), ("block", None), ("cluster", clustered)):
        for before, axis in ((f',"{what}":[', "x"), (", ", "y"), (", ", "z")):
            events.number(before, configs[f"{what}_{axis}"][rows], shown)
        events.same("]", shown)
    if sizes is not None and sizes.held is not None:
        _add_occupancy(events, sizes, rows)
    return b"".join(text for _, text in events.pieces()).decode().split("\n")[1:]


def _six(values: Float64) -> Float64:
    return np.round(values, 6)


def _add_occupancy(events: Events, sizes: LaunchSizes, rows: Int64) -> None:
    held = sizes.held
    assert held is not None
    events.number(',"est. achieved occupancy %":', sizes.achieved()[rows].astype(np.int64))
    limits = {
        "activeBlocksPerMultiprocessor": held.active_blocks,
        "blockLimitRegs": held.limit_registers,
        "blockLimitSharedMem": held.limit_shared_memory,
        "blockLimitWarps": held.limit_warps,
        "blockLimitBlocks": held.limit_blocks,
        "allocatedRegistersPerBlock": held.allocated_registers,
        "allocatedSharedMemPerBlock": held.allocated_shared_memory,
    }
    factors = [held.limiting_factors(row) for row in rows.tolist()]
    texts = sorted(set(factors))
    code = {text: i for i, text in enumerate(texts)}
    events.text(',"occupancy":{"limitingFactors":"', np.array([code[text] for text in factors], np.uint32), texts)
    events.same('"')
    for key, column in limits.items():
        values = np.asarray(column, np.int64)[rows]
        events.number(f',"{key}":', values, values != UNLIMITED)
    events.same("}")
