"""Samples of a device joined to the kernels and regions that ran meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cuptiprof.counters.collect import statistics
from cuptiprof.data.codes import distinct_rows, first_rows, renumbered
from cuptiprof.data.enums import KERNEL, REGION
from cuptiprof.data.tables import Array, Table
from cuptiprof.metrics import Metric

Float64 = npt.NDArray[np.float64]
MIN_SAMPLES = 2
"""An interval that holds fewer whole samples has no value."""


def unrecorded(kernels: int, losses: Mapping[str, int]) -> str:
    """What is to be said where kernels were launched while samples were taken, and not one has a record; "": nothing."""
    missing = losses["unreconciled_launches"]
    if kernels or not missing or losses["filter_rejected"]:
        return ""
    return (
        f"none of the {missing} kernels that were launched has a record: some releases of libcupti give none while samples "
        "are taken (reported for 12.8). Samples are whole; kernels and regions have no values of them"
    )


class Timeline:
    """Samples of one device in order of time: starts, ends (ns) and values (samples, metrics)."""

    def __init__(self, start: Array, end: Array, values: Float64, counts: npt.NDArray[np.bool_]) -> None:
        order = np.argsort(start, kind="stable")
        self.start, self.end = start[order].astype(np.int64), end[order].astype(np.int64)
        length = (self.end - self.start).astype(np.float64)[:, None]
        good = ~np.isnan(values[order])
        # A rate is weighted by time; a count is summed, and divided by time becomes a rate.
        weighted = np.where(good, values[order], 0.0) * np.where(counts, 1.0, length)
        self._sum = np.vstack([np.zeros(values.shape[1]), np.cumsum(weighted, axis=0)])
        self._time = np.vstack([np.zeros(values.shape[1]), np.cumsum(length * good, axis=0)])
        self._counts = counts

    def over(self, start: Array, end: Array) -> tuple[Float64, npt.NDArray[np.int64]]:
        """Values over intervals, (intervals, metrics), and the number of samples behind each.

        Only samples that lie wholly inside an interval are taken: others also saw what ran before or after. Rates are
        time-weighted means; counts are scaled to the interval's length.
        """
        first = np.searchsorted(self.start, start, "left")
        last = np.maximum(np.searchsorted(self.end, end, "right"), first)
        number = last - first
        with np.errstate(invalid="ignore", divide="ignore"):
            value = (self._sum[last] - self._sum[first]) / (self._time[last] - self._time[first])
        value = value * np.where(self._counts, (end - start).astype(np.float64)[:, None], 1.0)
        value[number < MIN_SAMPLES] = np.nan
        return value, number.astype(np.int64)


def join(metrics: Sequence[Metric], ranges: Table, values: Table, kernels: Table) -> tuple[Table, Table]:
    """The sample tables with rows for kernels (by device, name, region, grid and block) and for regions added.

    A region's time on the GPU is that from the start of its first kernel to the end of its last, instance by instance;
    regions inside it are not part of it.
    """
    width = len(metrics)
    kernels = kernels.timed()
    if not len(ranges) or not len(kernels) or not width:
        return ranges, values
    counts = np.array([m.kind == "count" for m in metrics])
    matrix = values.codes("value").reshape(-1, width)
    duration = kernels["end"] - kernels["start"]
    each = np.full((len(kernels), width), np.nan)
    behind = np.zeros(len(kernels), np.int64)
    instance, of_instance = renumbered(kernels.codes("region_instance"))
    span_start = np.full(len(instance), np.iinfo(np.int64).max)
    span_end = np.full(len(instance), np.iinfo(np.int64).min)
    np.minimum.at(span_start, of_instance, kernels["start"])
    np.maximum.at(span_end, of_instance, kernels["end"])
    region_each = np.full((len(instance), width), np.nan)
    region_behind = np.zeros(len(instance), np.int64)
    first_kernel = np.zeros(len(instance), np.intp)
    first_kernel[of_instance[::-1]] = np.arange(len(kernels))[::-1]
    for device in np.unique(ranges["device"]):
        mine = ranges["device"] == device
        timeline = Timeline(ranges["start"][mine], ranges["end"][mine], matrix[mine], counts)
        here = np.flatnonzero(kernels["device"] == device)
        each[here], behind[here] = timeline.over(kernels["start"][here], kernels["end"][here])
        there = np.flatnonzero((kernels["device"][first_kernel] == device) & (instance != 0))
        region_each[there], region_behind[there] = timeline.over(span_start[there], span_end[there])

    geometry = [kernels[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz"]
    keys = np.stack([kernels.codes(c).astype(np.int64) for c in ("device", "name", "region")] + geometry, axis=1)
    good = behind >= MIN_SAMPLES
    rows = [_aggregate(KERNEL, kernels, np.flatnonzero(good), keys[good], each[good], behind[good], duration[good])]
    seen = region_behind >= MIN_SAMPLES
    at = first_kernel[seen]
    rows.append(
        _aggregate(
            REGION,
            kernels,
            at,
            keys[at][:, [0, 2]],
            region_each[seen],
            region_behind[seen],
            (span_end - span_start)[seen],
        )
    )
    return _append(ranges, values, rows, counts)


Columns = dict[str, Array]


def _aggregate(
    kind: int, kernels: Table, at: Array, keys: Array, each: Float64, behind: Array, duration: Array
) -> tuple[Columns, Columns]:
    """One row a key: columns of ``metric_ranges``, and values with smallest, largest and spread over the occurrences.

    "value" is (keys, metrics, 2): the mean, as counts have it, and the mean weighted by duration, as rates do.

    Args:
        kind: KERNEL or REGION.
        at: for each occurrence the kernel that says where it was.
        each: values of the occurrences, (occurrences, metrics); behind: samples in them; duration: theirs, ns.
    """
    if not len(at):
        return {}, {}
    used, key = distinct_rows(*keys.T)
    count, width = len(used), each.shape[1]
    first = first_rows(key, count)
    source = at[first]
    ranges = {c: kernels.codes(c)[source] for c in ("region", "thread", "device", "context", "stream")}
    ranges["name"] = kernels.codes("name" if kind == KERNEL else "region")[source]
    ranges["start"] = kernels["start"][source]
    ranges["end"] = kernels["end"][source]
    ranges["occurrences"] = np.bincount(key, minlength=count).astype(np.uint32)
    ranges["kind"] = np.full(count, kind, np.uint8)
    if kind == KERNEL:
        ranges |= {f"{w}_{a}": kernels[f"{w}_{a}"][source] for w in ("grid", "block") for a in "xyz"}
    out: dict[str, list[Array]] = {c: [] for c in ("value", "min", "max", "spread", "count")}
    samples = np.bincount(key, behind, count)
    for j in range(width):
        mean, low, high, spread, _ = statistics(each[:, j], key, count)
        known = ~np.isnan(each[:, j])
        weight = np.bincount(key[known], duration[known].astype(np.float64), count)
        with np.errstate(invalid="ignore", divide="ignore"):
            weighted = np.bincount(key[known], each[known, j] * duration[known], count) / weight
        out["value"].append(np.stack([mean, weighted], axis=1))
        for name, column in zip(("min", "max", "spread", "count"), (low, high, spread, samples), strict=True):
            out[name].append(column)
    return ranges, {name: np.stack(columns, axis=1) for name, columns in out.items()}


def _append(
    ranges: Table, values: Table, rows: list[tuple[Columns, Columns]], counts: npt.NDArray[np.bool_]
) -> tuple[Table, Table]:
    """Both tables with what ``_aggregate`` made below their own rows. `counts`: which metrics are counts, not rates."""
    width = len(counts)
    metric = values.codes("metric")[:width]
    strategy = ranges["strategy"][0]
    next_id = len(ranges) + 1
    range_parts = [{c: ranges.codes(c) for c in ranges.column_names}]
    value_parts = [{c: values.codes(c) for c in values.column_names}]
    for new_ranges, new_values in rows:
        if not new_ranges:
            continue
        n = len(new_ranges["start"])
        ids = np.arange(next_id, next_id + n, dtype=np.uint32)
        next_id += n
        extra: dict[str, Array] = {
            "id": ids,
            "strategy": np.full(n, strategy, np.uint8),
            "passes": np.ones(n, np.uint16),
        }
        range_parts.append(_filled(ranges, new_ranges | extra, n))
        chosen = np.where(counts[None, :], new_values["value"][:, :, 0], new_values["value"][:, :, 1])
        flat = {c: new_values[c].reshape(-1) for c in ("min", "max", "spread", "count")}
        flat |= {"value": chosen.reshape(-1), "metric": np.tile(metric, n), "range": np.repeat(ids, width)}
        value_parts.append(_filled(values, flat | {"group": np.ones(n * width, np.uint16)}, n * width))
    return _joined(ranges, range_parts), _joined(values, value_parts)


def _filled(like: Table, given: Columns, rows: int) -> Columns:
    """All columns of a table of this kind: 0 where none is given."""
    full = {c: given.get(c, np.zeros(rows)) for c in like.column_names}
    return {c: np.asarray(v).astype(like.codes(c).dtype) for c, v in full.items()}


def _joined(like: Table, parts: list[Columns]) -> Table:
    """One table of several parts."""
    return Table(like.name, {c: np.concatenate([p[c] for p in parts]) for c in like.column_names}, like.strings)
