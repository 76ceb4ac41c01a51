"""Regions projected to the GPU: for each region and stream the span from its first to its last piece of work there."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Parts, group_stats
from cuptiprof.analysis.trees.region_tree import WORK_TABLES
from cuptiprof.data.codes import distinct, distinct_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array


def project(result: Result) -> dict[str, Array]:
    """Columns instance, region_row (row in ``regions``), device, stream, start, end of the spans, int64 ns.

    Work of a nested region counts for the regions around it too, so that the spans nest as the regions do. A span is
    one ns longer at either end than its work, as Kineto has it, unless other work of the stream touches it there.
    ``ProfilerStep#N`` has no span: HTA takes whatever bears that name for one more step.
    """
    regions = result.tables["regions"]
    tables = [result.tables[name] for name in WORK_TABLES]
    columns = {
        key: np.concatenate([table[column] for table in tables]).astype(np.int64)
        for key, column in {
            "instance": "region_instance",
            "device": "device",
            "stream": "stream",
            "start": "start",
            "end": "end",
        }.items()
    }
    row_of, parent_of = _rows_and_parents(result)
    is_step = _steps(result)
    columns["region_row"] = np.where(
        columns["instance"] < len(row_of), row_of[np.minimum(columns["instance"], len(row_of) - 1)], -1
    )
    stream_key, stream_id = distinct_rows(columns["device"], columns["stream"])

    # First spans of the innermost regions, then level by level outwards: few rows are left after the first step.
    stats = max(len(regions), 1)
    keep = columns["region_row"] >= 0
    row, stream = columns["region_row"][keep], stream_id[keep].astype(np.int64)
    start, end = columns["start"][keep], columns["end"][keep]
    pieces: list[tuple[Array, Array, Array, Array]] = []
    while len(row):
        key = stream * stats + row
        lowest, highest = group_stats(key, start), group_stats(key, end)
        row, stream = lowest.key % stats, lowest.key // stats
        start, end = lowest.minimum, highest.maximum
        pieces.append((row, stream, start, end))
        outer = parent_of[row]
        inside = outer >= 0
        row, stream, start, end = outer[inside], stream[inside], start[inside], end[inside]
    if pieces:
        row, stream, start, end = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        key = stream * stats + row
        lowest, highest = group_stats(key, start), group_stats(key, end)
        row, stream = lowest.key % stats, lowest.key // stats
        start, end = lowest.minimum, highest.maximum
    drawn = ~is_step[row]
    row, stream, start, end = row[drawn], stream[drawn], start[drawn], end[drawn]
    start, end = _widened(stream, start, end, stream_id, columns["start"], columns["end"])
    return {
        "region_row": row,
        "instance": regions["instance"][row].astype(np.int64),
        "device": stream_key[stream, 0],
        "stream": stream_key[stream, 1],
        "start": start,
        "end": end,
    }


def _steps(result: Result) -> Array:
    """Mask of the regions that are steps of a profiler."""
    regions = result.regions
    codes = regions.codes("name")
    steps = [code for code in distinct(codes).tolist() if regions.strings[code].startswith("ProfilerStep#")]
    mask: Array = np.isin(codes, steps)
    return mask


def _rows_and_parents(result: Result) -> tuple[Array, Array]:
    """Row of each region instance (index: instance; -1: none), and the row of each row's parent (-1: none).

    A parent that does not come before its child (a damaged file) counts as none, so that walking outwards ends.
    """
    regions = result.tables["regions"]
    instance = regions["instance"].astype(np.int64)
    order = np.argsort(instance, kind="stable")
    sorted_ids = instance[order]
    size = int(sorted_ids[-1]) + 1 if len(order) else 1
    if size > 64 * (len(order) + 1024):  # instances are counted from 1: anything this sparse is damage
        size = 1
    row_of = np.full(max(size, 1), -1, np.int64)
    valid = (instance > 0) & (instance < size)
    row_of[instance[valid]] = np.flatnonzero(valid)
    parent = regions["parent"].astype(np.int64)
    known = (parent > 0) & (parent < size) & (parent < instance)
    parent_of = np.full(len(instance), -1, np.int64)
    parent_of[known] = row_of[parent[known]]
    return row_of, parent_of


def _widened(
    stream: Array, start: Array, end: Array, work_stream: Array, work_start: Array, work_end: Array
) -> tuple[Array, Array]:
    out_start, out_end = start.copy(), end.copy()
    streams = int(work_stream.max()) + 1 if len(work_stream) else 0
    spans, work = (Parts(column, streams) for column in (stream, work_stream))
    for key in range(streams):
        mine, rows = spans[key], work[key]
        starts, ends = np.sort(work_start[rows]), np.sort(work_end[rows])
        before = np.searchsorted(ends, start[mine], side="right") - 1
        touches = (before >= 0) & (ends[np.maximum(before, 0)] == start[mine])
        out_start[mine] -= ~touches
        after = np.searchsorted(starts, end[mine], side="left")
        touches = (after < len(starts)) & (starts[np.minimum(after, len(starts) - 1)] == end[mine])
        out_end[mine] += ~touches
    return out_start, out_end
