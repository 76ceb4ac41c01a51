"""The tracks of a Perfetto trace: processes and their threads, GPUs and their streams, counters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.data.codes import Int64, distinct_rows
from cuptiprof.data.tables import Array
from cuptiprof.io.chrome.gpu_slices import OVERHEAD_PID
from cuptiprof.io.chrome.header import TrackRow
from cuptiprof.io.chrome.trace_layout import TraceLayout
from cuptiprof.io.perfetto.protobuf import message, track_packet

_FIRST = 1 << 32
"""number of the first row; those of processes and GPUs are below"""


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
        self._index = {key: i for i, key in enumerate(self._rows)}
        self._pids = sorted({pid for pid, _ in self._rows} | layout.devices)
        self._counters = len(self._rows)
        self.numbers = [_FIRST + i for i in range(max(len(self._rows), 1))]

    def index(self, pid: Array, tid: Array) -> Int64:
        """Index of the row of each slice."""
        keys, which = distinct_rows(pid, tid)
        of_keys = np.array([self._index[tuple(key)] for key in keys.tolist()], np.int64)
        return of_keys[which]

    def packets(self) -> Iterator[bytes]:
        """Descriptors, parents first."""
        layout = self._layout
        simulated = " (simulated)" if layout.result.simulated else ""
        gpus = layout.devices - {layout.who.pid, OVERHEAD_PID}
        for pid in self._pids:
            if pid in gpus:
                yield track_packet((1, self.parent(pid)), (2, f"GPU {pid}{simulated}"))
            elif pid != OVERHEAD_PID:
                process = message((1, pid), (6, f"python{simulated}"))
                yield track_packet((1, self.parent(pid)), (3, process))
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
        return 1 + self._pids.index(pid)

    def counter(self, device: int, name: str, unit: int | None = None) -> tuple[int, bytes]:
        """A further track, with its descriptor."""
        number = _FIRST + self._counters
        self._counters += 1
        counter = message((3, unit)) if unit else b""
        parent = [(5, self.parent(device))] if device in self._pids else []
        return number, track_packet((1, number), (2, name), *parent, (8, counter))
