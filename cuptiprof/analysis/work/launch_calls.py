"""The call of CUDA that caused a piece of GPU work, by their correlation ID."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.tables import Array, Table

_MOST_PER_ROW = 8  # marks that a table of all IDs may have, per call

_AT_ONCE = 1 << 17


def calls_of(api: Table, correlation: Array) -> Int64:
    """Row in ``api_calls`` of the call with each correlation ID, of several (a driver call within a runtime call) the one
    that began first; -1: none was recorded."""
    ids, start = api.codes("correlation_id"), api["start"]
    out = np.full(len(correlation), -1, np.int64)
    if not len(ids) or not len(correlation):
        return out
    # Linear where they are in order, as those of one thread are.
    begins = None if (start[1:] >= start[:-1]).all() else np.argsort(start, kind="stable")
    lowest, span = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
    wanted = correlation.astype(np.int64) - lowest
    known = (wanted >= 0) & (wanted < span) & (correlation != 0)
    if span <= _MOST_PER_ROW * (len(ids) + len(correlation)) + 1024:
        place = np.full(span, -1, np.int64 if len(ids) >= 1 << 31 else np.int32)
        for last in range(len(ids), 0, -_AT_ONCE):  # backwards: of several the last that is written stays
            rows = np.arange(last - 1, max(last - _AT_ONCE, 0) - 1, -1)
            calls = rows if begins is None else begins[rows]
            place[ids[calls].astype(np.int64) - lowest] = calls
        out[known] = place[wanted[known]]
        return out
    begins = np.arange(len(ids)) if begins is None else begins
    order = begins[np.argsort(ids[begins], kind="stable")]
    ordered = ids[order].astype(np.int64) - lowest
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(known & (ordered[at] == wanted), order[at], -1)
