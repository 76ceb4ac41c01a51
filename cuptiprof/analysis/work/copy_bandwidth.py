"""The bandwidth of copies and sets over time, by kind of copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.point_summary import PointSummary, summary_of
from cuptiprof.analysis.work.gpu_work import bandwidths
from cuptiprof.data import enums
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table

SHORTEST_NS = 1_000
"""What a copy lasts that has a bandwidth and no time: files of whole microseconds, HTA's rule for them."""


@dataclass(frozen=True)
class CopyBandwidth:
    """Of one GPU and kind of copy: a step function, and what it comes to.

    Attributes:
        kind: ``Memcpy HtoD`` and so on, ``Memset``.
        copies, bytes, busy: how many there were, their sizes and their times (ns) added up.
        time, rate: int64 and float64 arrays of one length: from each time (ns) on, so many bytes/s, of copies
            that run at once added up.
        points: statistics of ``rate`` where it is above 0; None: no copy has one.
    """

    device: int
    kind: str
    copies: int
    bytes: int
    busy: int
    time: Int64
    rate: npt.NDArray[np.float64]
    points: PointSummary | None


def copy_bandwidths(result: Result) -> list[CopyBandwidth]:
    """By GPU and kind: HTA's ``get_memory_bw_time_series`` and ``get_memory_bw_summary``.

    The bandwidth of a copy is what the file says (GB/s, 10**9), else its bytes by its time. Of changes at one time ends come first;
    HTA leaves that to a sort that is not stable. Where nothing runs the rate is 0, and not what is left of adding and taking away.
    """
    out = []
    for table, name in ((result.memcpys, "Memcpy"), (result.memsets, "Memset")):
        kinds = table["copy_kind"] if name == "Memcpy" else np.zeros(len(table), np.uint8)
        groups, which = distinct_rows(table["device"], kinds)
        for i, (device, kind) in enumerate(groups.tolist()):
            label = f"{name} {enums.MEMCPY_KINDS.get(kind, 'Unknown')}" if name == "Memcpy" else name
            out.append(_of(table, np.flatnonzero(which == i), device, label))
    return out


def _of(table: Table, rows: Int64, device: int, kind: str) -> CopyBandwidth:
    rate = 1e9 * bandwidths(table, slice(None))[rows]
    start, end, size = table["start"][rows], table["end"][rows], table["bytes"][rows]
    end = np.maximum(end, start)
    busy = int((end - start).sum())
    has = np.isfinite(rate)
    start, end, rate = start[has], np.where(end == start, start + SHORTEST_NS, end)[has], rate[has]
    time = np.concatenate([end, start])
    order = np.argsort(time, kind="stable")
    level = np.cumsum(np.concatenate([-rate, rate])[order])
    running = np.cumsum(np.repeat(np.array([-1, 1]), len(rate))[order])
    level = np.where(running > 0, np.maximum(level, 0), 0.0)
    above = level[level > 0]
    return CopyBandwidth(
        device=device,
        kind=kind,
        copies=len(rows),
        bytes=int(size.sum(dtype=np.uint64)),
        busy=busy,
        time=time[order],
        rate=level,
        points=summary_of(above) if len(above) else None,
    )
