"""What PyTorch's allocators gave and took back (``[memory]``, profile_memory=True): GPU memory as rows of ``allocator_events``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.operator_work.operator_places import KNOWN, OUTSIDE
from cuptiprof.data.enums import ALLOCATOR_ACTIONS, code_of
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.operator_rows import Operators
from cuptiprof.io.kineto.region_rows import RegionRows, placed
from cuptiprof.io.kineto.trace_columns import Int64, TraceColumns

_CPU = 0
"""c10::DeviceType; others of which allocators tell are GPUs"""


def memory_events(columns: TraceColumns, instants: Int64) -> tuple[Int64, Int64]:
    """Of the events of the phase "i" those of GPU memory, and those of the CPU's."""
    is_one = columns.mapped(columns.tokens("name", instants), lambda token: columns.value(token) == "[memory]", bool)
    found = instants[is_one]
    on_cpu = columns.numbers("Device Type", found, _CPU) == _CPU
    return found[~on_cpu], found[on_cpu]


def allocations(rows: EventRows, operators: Operators, regions: RegionRows) -> dict[str, Any]:
    """Columns of ``allocator_events``. Sizes are those that the allocator gave; a negative one was taken back."""
    size = rows.number("Bytes")
    kept = rows.kept(
        {
            "address": rows.count("Addr", 63),
            "bytes": rows.limited(np.abs(size), 63, "Bytes"),
            "device": rows.count("Device Id"),
            "thread": rows.low32("tid"),
            "action": np.where(
                size >= 0, code_of(ALLOCATOR_ACTIONS, "alloc"), code_of(ALLOCATOR_ACTIONS, "free_completed")
            ),
        }
    )
    row = operators.spans.at(kept["thread"], rows.start)
    known = np.flatnonzero(row >= 0)
    operator, instance, backward = (np.zeros(len(row), np.int64) for _ in range(3))
    if len(known):
        operator[known], _ = operators.paths(row[known])
        instance[known] = operators.instance[row[known]]
        backward[known] = operators.backward[row[known]]
    return {
        **kept,
        **placed(regions, kept["thread"], rows.start),
        "timestamp": rows.start,
        "operator": operator,
        "operator_instance": instance,
        "operator_known": np.where(row >= 0, KNOWN, OUTSIDE),
        "backward": backward,
    }
