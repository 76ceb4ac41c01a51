"""The last part of a result."""

from __future__ import annotations

from cuptiprof.data.coverage import KEY, unobserved
from cuptiprof.data.result import Result

_TIMES = ("end", "timestamp", "device_timestamp")
"""A row is of the window when it ended in it; the first of these that a table has."""


def last_part(result: Result, *, seconds: float | None = None, steps: int | None = None) -> Result:
    """What ended in the last `seconds`, or since the beginning of the `steps`-th step from the end; rows without a time stay.

    Args:
        seconds: before the end of the result; None: no such limit.
        steps: how many of those in ``markers``, the one that runs among them; None, or more than there are: no such limit.
    """
    start = int(result.metadata.get("start_time_ns", 0))
    since = start
    if seconds is not None:
        since = max(since, int(result.metadata.get("stop_time_ns", 0)) - round(seconds * 1e9))
    if steps is not None:
        markers = result.markers
        begins = markers["start"][markers["category"] == "step"]
        if len(begins) > steps:
            begins.sort()
            since = max(since, int(begins[-steps]))
    if since <= start:
        return result
    tables = {}
    for name, table in result.tables.items():
        time = next((column for column in _TIMES if column in table.column_names), None)
        tables[name] = table if time is None else table.where((table[time] >= since) | (table[time] == 0))
    metadata = {**result.metadata, "start_time_ns": since}
    if KEY in metadata:
        begin, end = unobserved(metadata)
        metadata[KEY] = [[max(b, since), e] for b, e in zip(begin.tolist(), end.tolist(), strict=True) if e > since]
    return Result(tables, metadata, dict(result.losses))
