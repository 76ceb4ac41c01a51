"""Copies between host and GPU beside which the GPU does nothing: small ones, from memory that is not pinned, not overlapped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import of_work
from cuptiprof.analysis.advice.suggestion import Suggestion
from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.intervals import length, time_within, union_of, union_of_all
from cuptiprof.analysis.thresholds import SMALL_COPY, WORTH
from cuptiprof.data import enums
from cuptiprof.data.tables import Array
from cuptiprof.text.units import format_byte_rate, format_bytes, format_time

_PAGEABLE = enums.code_of(enums.MEMORY_KINDS, "Pageable")
_TO_DEVICE = [code for code, name in enums.MEMCPY_KINDS.items() if name in ("HtoD", "HtoA")]
_TO_GPU = "to the GPU"
_TO_HOST = [code for code, name in enums.MEMCPY_KINDS.items() if name in ("DtoH", "AtoH")]


def host_copies(evidence: Evidence) -> Iterator[Suggestion]:
    """Each copy is in one finding: small, else pageable, else not overlapped; of these the time in which no kernel ran."""
    copies = evidence.result.memcpys
    if not len(copies):
        return
    kind, size = copies["copy_kind"], copies["bytes"]
    to_device, to_host = np.isin(kind, _TO_DEVICE), np.isin(kind, _TO_HOST)
    pageable = (copies["src_kind"] == _PAGEABLE) & to_device | (copies["dst_kind"] == _PAGEABLE) & to_host
    small = (size > 0) & (size < SMALL_COPY.value)
    for direction, mask in ((_TO_GPU, to_device), ("to the host", to_host)):
        yield from _finding(evidence, mask & small, "small_copies", "Small copies", direction,
            "Put what belongs together into one copy; make small tensors on the GPU; read results back once in many steps.")  # fmt: skip
        yield from _finding(evidence, mask & pageable & ~small, "pageable_copies", "Copies of pageable memory", direction,
            "Pinned memory copies faster, and beside kernels: DataLoader(pin_memory=True), tensor.pin_memory(), "
            ".to(device, non_blocking=True).")  # fmt: skip
        yield from _finding(evidence, mask & ~pageable & ~small, "exposed_copies", "Copies beside which nothing runs", direction,
            "Copy the next batch in a stream of its own while this one is computed (non_blocking=True, a prefetcher)." if direction == _TO_GPU else
            "Copy results into pinned memory in a stream of its own (non_blocking=True), and read them a step later.")  # fmt: skip


def _finding(
    evidence: Evidence, mask: Array, rule: str, title: str, direction: str, advice: str
) -> Iterator[Suggestion]:
    copies = evidence.result.memcpys
    rows = np.flatnonzero(mask)
    if not len(rows):
        return
    lasted = np.maximum(copies["end"][rows] - copies["start"][rows], 0)
    if not evidence.exceeds(int(lasted.sum()), WORTH):
        return
    time, alone = 0, 0
    for device, work in evidence.work.items():
        mine = rows[copies["device"][rows] == device]
        spans = union_of(copies["start"][mine], copies["end"][mine])
        kernels = union_of_all([work["compute"], work["communication"]])
        time += length(spans)
        alone += length(spans) - int(time_within(kernels, spans.start, spans.end).sum())
    if not evidence.exceeds(alone, WORTH):
        return
    size = int(copies["bytes"][rows].sum(dtype=np.uint64))
    weight: Int64 = lasted
    rate = f" at {format_byte_rate(size / (int(lasted.sum()) * 1e-9))}" if size else ""
    yield Suggestion(rule, title, of_work(evidence.result, [(copies, rows, weight)]), time, alone,
        f"{len(rows):,} copies {direction}{' of pageable memory' if rule == 'pageable_copies' else ''} ({format_bytes(size / len(rows))} "
        f"each{rate}) took {format_time(time)}; no kernel ran during {format_time(alone)} of it.", advice)  # fmt: skip
