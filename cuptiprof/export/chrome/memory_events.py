"""The events of PyTorch's caching allocator in the trace: torch.profiler's ``[memory]``, which TensorBoard's memory view is made of, and a
counter track of what is allocated and reserved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.allocators.allocator_memory import ALLOC, FREED, devices, memory_timeline
from cuptiprof.data.result import Result
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.chrome.json_text import Events

_CUDA = 1  # c10::DeviceType


def memory_events(result: Result, who: Identity) -> Iterator[Events]:
    """One instant event an allocation or release, on the thread it was made on (0: unknown), and one value of the counter."""
    table = result.allocator_events
    for device in devices(result):
        timeline = memory_timeline(result, device)
        part = np.flatnonzero(np.isin(table["action"][timeline.rows], (ALLOC, FREED)))
        rows = timeline.rows[part]
        size = table["bytes"][rows].astype(np.int64)
        ts = who.clock.since(timeline.time[part])
        allocated, reserved = timeline.allocated[part], timeline.reserved[part]
        instants = Events(len(rows)).same(
            f',\n{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{who.pid}'
        )
        instants.number(',"tid":', table["thread"][rows]).time(',"ts":', ts)
        instants.number(',"args":{"Total Reserved":', reserved).number(',"Total Allocated":', allocated)
        instants.number(',"Bytes":', np.where(table["action"][rows] == ALLOC, size, -size))
        instants.same(f',"Device Id":{device},"Device Type":{_CUDA}').number(',"Addr":', table["address"][rows])
        yield instants.same("}}")
        counter = Events(len(rows))
        counter.same(f',\n{{"ph":"C","cat":"memory","name":"PyTorch memory","pid":"GPU {device} Memory"')
        counter.time(',"ts":', ts).number(',"args":{"allocated":', allocated).number(',"reserved":', reserved)
        yield counter.same("}}")
