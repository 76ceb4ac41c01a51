"""Values of the hardware counters of a run as arrays, and the kernels they belong to."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.counter_values.counter_record import CounterRecord, MetricInfo
from cuptiprof.data.enums import KERNEL, LAUNCH
from cuptiprof.data.tables import Array, Table

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_FIELDS = ("value", "min", "max", "spread", "count", "group", "from_means")


class Counters(Mapping[str, Float64]):
    """Counter values of a run. ``counters["ipc"]`` has one value a row of ``metric_ranges``, float64, NaN where missing.

    Metrics come in the order in which they were asked for. A value that is not finite counts as missing; of two values
    of one metric for one range the later one counts.
    """

    def __init__(self, ranges: Table, metrics: Table, metadata: Mapping[str, Any]) -> None:
        self.ranges = ranges
        self.metrics = metrics
        self.plan = CounterRecord.of(metadata) or CounterRecord()
        self._infos = {info.name: info for info in reversed(self.plan.metrics)}
        self._last_join: tuple[weakref.ref[Table], Int64, Int64] | None = None

    # Whoever only opens a run shall not wait for its counters to be sorted.

    @functools.cached_property
    def _rows(self) -> npt.NDArray[np.intp]:
        """Rows of ``metrics``, those of one metric side by side."""
        return np.argsort(self.metrics.codes("metric"), kind="stable")

    @functools.cached_property
    def _range_row(self) -> Int64:
        """Row of ``metric_ranges`` of each row of ``metrics``; -1: none."""
        return match(self.metrics.codes("range"), self.ranges.codes("id"))

    @functools.cached_property
    def _slices(self) -> dict[str, slice]:
        """Metric -> its part of ``_rows``."""
        codes, strings = self.metrics.codes("metric"), self.metrics.strings
        used, first = np.unique(codes[self._rows], return_index=True)
        edges = np.r_[first, len(codes)]
        found = {strings[int(code)]: slice(edges[i], edges[i + 1]) for i, code in enumerate(used)}
        asked = [m.name for m in self.plan.metrics if m.name in found]
        asked_for = set(asked)
        others = sorted(
            (name for name in found if name not in asked_for), key=lambda name: self._rows[found[name].start]
        )
        return {name: found[name] for name in (*asked, *others)}

    def __getitem__(self, metric: str) -> Float64:
        return self.column(metric)

    def __iter__(self) -> Iterator[str]:
        return iter(self._slices)

    def __len__(self) -> int:
        return len(self._slices)

    def __contains__(self, metric: object) -> bool:
        return metric in self._slices

    def info(self, metric: str) -> MetricInfo:
        """Unit, description and so on of a metric."""
        return self._infos.get(metric) or MetricInfo(metric)

    def rows_of(self, metric: str) -> tuple[Int64, Int64]:
        """Rows of ``metrics`` that hold a metric, and the row of ``metric_ranges`` of each.

        Raises:
            KeyError: the run has no such metric.
        """
        if metric not in self._slices:
            raise KeyError(f"the run has no metric {metric!r}; it has {', '.join(self._slices) or 'none'}")
        rows = self._rows[self._slices[metric]]
        rows = rows[self._range_row[rows] >= 0]
        return rows, self._range_row[rows]

    def column(self, metric: str, what: str = "value") -> Float64:
        """A field of ``metrics`` ("value", "min", "max", "spread", "count", ...), one float64 a row of ``metric_ranges``.

        Raises:
            KeyError: the run has no such metric, or ``metrics`` no such field.
        """
        if what not in _FIELDS:
            raise KeyError(f"no field {what!r}; there are {', '.join(_FIELDS)}")
        rows, where = self.rows_of(metric)
        out = np.full(len(self.ranges), np.nan)
        out[where] = finite(self.metrics.codes(what)[rows])
        return out

    def of_kernels(self, kernels: Table, metric: str) -> Float64:
        """A metric joined to kernels: float64, one value a kernel, NaN where it was not measured.

        A launch that was measured has its own value (joined by correlation ID). Under ``iterate`` all occurrences of a
        kernel have the mean over those that were measured (joined by device, name, region, grid and block).

        Raises:
            KeyError: the run has no such metric.
        """
        values = self.column(metric)
        by_launch, by_key = self._join(kernels)
        out = _take(values, by_launch)
        return np.where(np.isnan(out), _take(values, by_key), out)

    def _join(self, kernels: Table) -> tuple[Int64, Int64]:
        last = self._last_join
        if last is not None and last[0]() is kernels:
            return last[1], last[2]
        by_launch, by_key = join_launches(self.ranges, kernels), join_keys(self.ranges, kernels)
        self._last_join = (weakref.ref(kernels), by_launch, by_key)
        return by_launch, by_key


def join_launches(ranges: Table, kernels: Table) -> Int64:
    """Row of ``metric_ranges`` of each kernel that was measured as one launch; -1: none."""
    measured = np.flatnonzero((ranges.codes("kind") == LAUNCH) & (ranges.codes("correlation_id") != 0))
    found = match(kernels.codes("correlation_id"), ranges.codes("correlation_id")[measured])
    out = np.where(found >= 0, measured[found] if len(measured) else -1, -1)
    # The kernels of a graph launch share its correlation ID, and so the range: there the name must agree too.
    joined = np.flatnonzero(out >= 0)
    shared = joined[np.bincount(out[joined], minlength=1)[out[joined]] > 1]
    out[shared[ranges.codes("name")[out[shared]] != kernels.codes("name")[shared]]] = -1
    return out.astype(np.int64)


def join_keys(ranges: Table, kernels: Table) -> Int64:
    """Row of ``metric_ranges`` of each kernel that was measured over its occurrences; -1: none."""
    measured = np.flatnonzero(ranges.codes("kind") == KERNEL)
    # Ranges are few and kernels many: the kernels are looked up among the ranges, never sorted. Keys of the ranges are
    # numbered afresh with each column, so that they stay small.
    key = np.zeros(len(measured), np.int64)
    wanted = np.zeros(len(kernels), np.int64)
    for column in ("device", "name", "region", *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")):
        is_text = column in ("name", "region")
        ours, theirs = ((t.codes(column) if is_text else t[column]).astype(np.int64) for t in (ranges, kernels))
        values, ours = np.unique(ours[measured], return_inverse=True)
        found = match(theirs, values)
        known, key = np.unique(key * (len(values) + 1) + ours.reshape(-1), return_inverse=True)
        key = key.reshape(-1)
        wanted = match(np.where((found >= 0) & (wanted >= 0), wanted * (len(values) + 1) + found, -1), known)
    found = match(wanted, key)
    out: Int64 = np.where(found >= 0, measured[found] if len(measured) else -1, -1).astype(np.int64)
    return out


def match(wanted: Array, keys: Array) -> Int64:
    """Index in ``keys`` of each of ``wanted`` (the first, if there are several); -1: it is not there."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    at = np.minimum(np.searchsorted(ordered, wanted), len(keys) - 1)
    out: Int64 = np.where(ordered[at] == wanted, order[at], -1).astype(np.int64)
    return out


def finite(values: Array) -> Float64:
    """float64 with NaN for everything that is not a number one can show."""
    out = np.asarray(values, np.float64)
    return np.where(np.isfinite(out), out, np.nan)


def _take(values: Float64, rows: Int64) -> Float64:
    if not len(values):
        return np.full(len(rows), np.nan)
    out: Float64 = np.where(rows >= 0, values[rows], np.nan)
    return out
