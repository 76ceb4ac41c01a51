"""The events of PyTorch's caching allocator in the trace: torch.profiler's ``[memory]``, which TensorBoard's memory view is made of, and a
counter track of what is allocated and reserved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.allocator_memory import ALLOC, FREED, devices, memory_timeline
from cuptiprof.data.result import Result
from cuptiprof.io.chrome.identity import Identity

CHUNK = 1 << 15
_CUDA = 1  # c10::DeviceType


def memory_events(result: Result, who: Identity) -> Iterator[list[str]]:
    """One instant event an allocation or release, on the thread it was made on (0: unknown), and one value of the counter."""
    events = result.allocator_events
    for device in devices(result):
        timeline = memory_timeline(result, device)
        counts = np.flatnonzero(np.isin(events["action"][timeline.rows], (ALLOC, FREED)))
        for first in range(0, len(counts), CHUNK):
            part = counts[first : first + CHUNK]
            rows = timeline.rows[part]
            size = events["bytes"][rows].astype(np.int64)
            columns = (
                who.clock.ts(timeline.time[part]),
                events["thread"][rows].tolist(),
                events["address"][rows].tolist(),
                np.where(events["action"][rows] == ALLOC, size, -size).tolist(),
                timeline.allocated[part].tolist(),
                timeline.reserved[part].tolist(),
            )
            texts = []
            for ts, tid, address, change, allocated, reserved in zip(*columns, strict=True):
                texts.append(
                    f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{who.pid},"tid":{tid},"ts":{ts},'
                    f'"args":{{"Total Reserved":{reserved},"Total Allocated":{allocated},"Bytes":{change},"Device Id":{device},'
                    f'"Device Type":{_CUDA},"Addr":{address}}}}}'
                )
                texts.append(
                    f'{{"ph":"C","cat":"memory","name":"PyTorch memory","pid":"GPU {device} Memory","ts":{ts},'
                    f'"args":{{"allocated":{allocated},"reserved":{reserved}}}}}'
                )
            yield texts
