"""The tracks of a Perfetto trace: processes and their threads, GPUs and their streams, counters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.utilization.system_events import KINDS, SystemEvent
from cuptiprof.data.codes import Int64, distinct_rows
from cuptiprof.data.tables import Array
from cuptiprof.export.chrome.gpu_slices import OVERHEAD_PID
from cuptiprof.export.chrome.header import TrackRow
from cuptiprof.export.chrome.trace_layout import TraceLayout
from cuptiprof.export.perfetto.packets import track_packet
from cuptiprof.export.protobuf import message

_FIRST = 1 << 32
"""number of the first row; those of processes and GPUs are below"""
_RANK_BITS = 40
"""of the numbers of one rank among several"""

_BEFELL = 1 << 40
"""rows of what befell a GPU begin here; those of streams and threads have 32 bits"""


def befell_tid(event: SystemEvent) -> int:
    """The row of an event beside those of its GPU's streams."""
    return _BEFELL + KINDS.index(event.kind)


class TrackTree:
    """Numbers the rows of a layout.

    Attributes:
        numbers: of every row in the file, in the order of ``index``.
    """

    def __init__(self, layout: TraceLayout) -> None:
        self._layout = layout
        self._rows = dict(layout.rows)
        for row in np.unique(layout.overhead_row).tolist():
            name = "CUPTI overhead" + (f" ({row})" if row else "")
            self._rows[OVERHEAD_PID, row] = TrackRow(OVERHEAD_PID, row, name, 0)
        self._befell = {event.device for event in layout.befell}
        for event in layout.befell:
            tid = befell_tid(event)
            self._rows[event.device, tid] = TrackRow(event.device, tid, f"System: {event.kind}", 0)
        self._index = {key: i for i, key in enumerate(self._rows)}
        place = layout.who.place
        self._zero = 0 if place is None else (place.index + 1) << _RANK_BITS
        self._pids = sorted({pid for pid, _ in self._rows} | layout.devices)
        self._counters = len(self._rows)
        self.numbers = [self._zero + _FIRST + i for i in range(max(len(self._rows), 1))]

    def index(self, pid: Array, tid: Array) -> Int64:
        """Index of the row of each slice."""
        keys, which = distinct_rows(pid, tid)
        of_keys = np.array([self._index[tuple(key)] for key in keys.tolist()], np.int64)
        return of_keys[which]

    def packets(self) -> Iterator[bytes]:
        """Descriptors, parents first."""
        layout = self._layout
        simulated = " (simulated)" if layout.result.simulated else ""
        place = layout.who.place
        gpus = (layout.devices | self._befell) - {layout.who.pid, OVERHEAD_PID}
        for pid in self._pids:
            if pid in gpus:
                label = f"GPU {layout.who.gpu_of(pid)}{simulated}"
                yield track_packet((1, self.parent(pid)), (2, label if place is None else f"{place.name} {label}"))
            elif pid != OVERHEAD_PID:
                process = f"{'python' if place is None else place.name}{simulated}"
                labels = [(8, place.labels)] if place is not None else []
                yield track_packet((1, self.parent(pid)), (3, message((1, pid), (6, process), *labels)))
        for (pid, tid), i in self._index.items():
            row = self._rows[pid, tid]
            number, name = (1, self.numbers[i]), (2, row.name.strip())
            if pid == OVERHEAD_PID:
                yield track_packet(number, name)
            elif pid in gpus or tid != row.sort_index:
                yield track_packet(number, name, (5, self.parent(pid)))
            else:
                yield track_packet(number, (4, message((1, pid), (2, tid), (5, row.name))))

    def parent(self, pid: int) -> int:
        """Number of a process or GPU."""
        return self._zero + 1 + self._pids.index(pid)

    def counter(self, device: int, name: str, unit: int | None = None) -> tuple[int, bytes]:
        """A further track, with its descriptor."""
        number = self._zero + _FIRST + self._counters
        self._counters += 1
        counter = message((3, unit)) if unit else b""
        parent = [(5, self.parent(device))] if device in self._pids else []
        return number, track_packet((1, number), (2, name), *parent, (8, counter))
