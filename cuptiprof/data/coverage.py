"""The time of a run in which nothing was observed: its session was paused, so that it is not known what the GPU did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.text.units import format_percent, format_time

Int64 = npt.NDArray[np.int64]
KEY = "unobserved_ns"
"""``metadata[KEY]``: [[start, end], ...], ns on the run clock; not there: all was observed."""
_MOST = 1_000_000


def unobserved(metadata: Mapping[str, Any]) -> tuple[Int64, Int64]:
    """Start and end of each such time, disjoint and in order, int64 ns; what in the metadata is none is left out."""
    given = metadata.get(KEY)
    pairs = [
        pair
        for pair in (given[:_MOST] if isinstance(given, list) else ())
        if isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(type(at) is int and abs(at) < 1 << 62 for at in pair)
    ]
    times = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    start, end = times[:, 0], np.maximum.accumulate(times[:, 1]) if len(times) else times[:, 1]
    start = np.maximum(start, np.r_[start[:1], end[:-1]])
    some = end > start
    return start[some], end[some]


def time_unobserved(metadata: Mapping[str, Any], first: Int64, last: Int64) -> Int64:
    """How much of each [first, last) was not observed, ns."""
    start, end = unobserved(metadata)
    return _before(start, end, last) - _before(start, end, first)


def coverage_line(metadata: Mapping[str, Any]) -> str:
    """What a report says of it; empty: all was observed."""
    start, end = unobserved(metadata)
    if not len(start):
        return ""
    first, last = (metadata.get(f"{what}_time_ns") for what in ("start", "stop"))
    missing = int((end - start).sum())
    of = ""
    if isinstance(first, int) and isinstance(last, int) and last - first >= missing:
        of = f" of {format_time(last - first)} ({format_percent(100 * missing / max(last - first, 1))})"
    return f"Not observed: {format_time(missing)}{of}, {len(start):,} {'time' if len(start) == 1 else 'times'}; what the GPU did then is not known, and is not idle time."


def _before(start: Int64, end: Int64, at: Int64) -> Int64:
    """Time of the intervals before each moment."""
    until = np.r_[0, np.cumsum(end - start)]
    place = np.searchsorted(start, at, side="right")
    last = np.maximum(place - 1, 0)
    over = np.where(place > 0, np.maximum((end[last] if len(end) else np.zeros_like(at)) - at, 0), 0)
    found: Int64 = until[place] - over
    return found
