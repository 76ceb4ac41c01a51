"""All that ran on the GPUs, stream by stream, in order of time: kernels, copies, sets, graphs that were recorded whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, stable_order
from cuptiprof.analysis.work.gpu_work import traced_graphs
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table


@dataclass(frozen=True)
class StreamWork:
    """Columns of one length, by stream, then by start.

    Attributes:
        device, stream: of each stream's number; int64, one entry a stream.
        which: number of the stream, by ascending device and stream ID.
        start, end: ns; ``end`` is never before ``start``.
        correlation: correlation ID of the call that caused it; 0: none.
        row: row in :func:`work_tables`, one below the other.
    """

    device: Int64
    stream: Int64
    which: Int64
    start: Int64
    end: Int64
    correlation: Array
    row: Int64

    @property
    def is_first(self) -> npt.NDArray[np.bool_]:
        """Mask of the first piece of work of each stream."""
        return np.r_[True, self.which[1:] != self.which[:-1]] if len(self.which) else np.zeros(0, bool)


def work_tables(result: Result) -> list[Table]:
    """Kernels, copies, sets, and graphs of which no nodes were recorded."""
    graphs = result.graph_launches
    whole = graphs.where(traced_graphs(result)) if len(graphs) else graphs
    return [result.kernels, result.memcpys, result.memsets, whole]


def stream_work(result: Result) -> StreamWork:
    """Of a result whose work has times (``Result.timed``)."""
    tables = work_tables(result)
    start, end, correlation, device, stream = (
        np.concatenate([table[column] for table in tables])
        for column in ("start", "end", "correlation_id", "device", "stream")
    )
    order = np.argsort(start, kind="stable")
    streams, which = distinct_rows(device, stream)
    order = order[stable_order(which[order])]
    start = start[order]
    return StreamWork(
        device=streams[:, 0],
        stream=streams[:, 1],
        which=which[order].astype(np.int64),
        start=start,
        end=np.maximum(end[order], start),
        correlation=correlation[order],
        row=order,
    )
