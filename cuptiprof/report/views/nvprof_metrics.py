"""nvprof's tables of metrics (Min, Max, Avg) and events (and Total): launches of a kernel taken together, by device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.counter_values.kernel_counters import Float64, Int64, finite
from cuptiprof.analysis.work.counted import NOTHING, dense, device_label, device_labels, range_names, units
from cuptiprof.data.codes import distinct_rows, first_rows
from cuptiprof.data.enums import KERNEL, LAUNCH, REGION, SAMPLE, STRATEGIES, code_of
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View
from cuptiprof.text.metric_units import form_of

# What nvprof would call a kernel line, for each kind of range.
_WORK = {LAUNCH: "Kernel: ", KERNEL: "Kernel: ", REGION: "Region: ", SAMPLE: "Samples"}

_HEADINGS = (Heading("device", 'Device "{}"'), Heading("work"))
_DEVICE = Column("device", "Device", "label")
_ORDINAL = Column("device_ordinal", "Device", "count", human=False)
_KERNEL = Column("kernel", "Kernel", "text", human=False)
_LINE = Column("work", "Work", "text", machine=False)
_KIND = Column("kind", "Kind", "label", human=False)
_INVOCATIONS = Column("invocations", "Invocations", "count", min_width=11, rank=3)
_UNIT = Column("unit", "Unit", "label", human=False)


def _statistic(key: str, title: str, rank: int = 0) -> Column:
    return Column(key, title, "metric", unit_key="unit", min_width=10, rank=rank)


_STATISTICS = (_statistic("min", "Min", 2), _statistic("max", "Max", 1), _statistic("avg", "Avg"))


def metrics_view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """Device, kernel: invocations, metric, description, min, max, avg. ``limit`` is kernels a device."""
    found = aggregate(result, demangle)
    keep = found.first_kernels(limit)
    infos = [result.counters.info(name) for name in found.metrics]
    each = found.metric[keep].tolist()
    data = _common(result, found, keep) | {
        "metric": [found.metrics[i] for i in each],
        "description": [infos[i].description for i in each],
    }
    columns = (_DEVICE, _ORDINAL, _LINE, _KIND, _KERNEL, _INVOCATIONS, Column("metric", "Metric Name", "label", min_width=40, may_cut=True),
               Column("description", "Metric Description", "label", min_width=40, may_cut=True, rank=4), *_STATISTICS, _UNIT)  # fmt: skip
    return View(columns=columns, data=data, headings=_HEADINGS, notes={"": NOTHING}, footers=found.left_out(limit))


def events_view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """Device, kernel: invocations, event, min, max, avg, total over all invocations. ``limit`` is kernels a device.

    Events are what the plan calls so; if it calls nothing so, all metrics that count something.
    """
    found = aggregate(result, demangle)
    found = found.where(np.isin(found.metric, _events(result, found.metrics)))
    keep = found.first_kernels(limit)
    data = _common(result, found, keep) | {
        "event": [found.metrics[i] for i in found.metric[keep].tolist()],
        "total": (found.mean * found.invocations)[keep].tolist(),
    }
    columns = (_DEVICE, _ORDINAL, _LINE, _KIND, _KERNEL, _INVOCATIONS, Column("event", "Event Name", "label", min_width=40, may_cut=True),
               *_STATISTICS, _statistic("total", "Total"), _UNIT)  # fmt: skip
    notes = {"": "No events were recorded." if len(result.counters) else NOTHING}
    return View(columns=columns, data=data, headings=_HEADINGS, notes=notes, footers=found.left_out(limit))


def _events(result: Result, names: list[str]) -> list[int]:
    events = [i for i, name in enumerate(names) if result.counters.info(name).category == "event"]
    if events:
        return events
    unit_of = units(result)
    return [i for i, name in enumerate(names) if form_of(unit_of[name]) == "count"]


@dataclass(frozen=True)
class Aggregate:
    """Statistics of each (device, kind, name, metric), ordered so; arrays of one length.

    ``kind`` is 1 for kernels (launch by launch or over their occurrences), 3 for regions, 4 for samples; ``name`` is an
    index into ``names``, ``metric`` one into ``metrics``. Means are weighted by the number of values behind them.
    """

    names: list[str]
    metrics: list[str]
    device: Int64
    kind: Int64
    name: Int64
    metric: Int64
    invocations: Int64
    minimum: Float64
    maximum: Float64
    mean: Float64
    kernels_before: Int64  # kernels of the same device that come before the row's

    def where(self, mask: npt.NDArray[np.bool_]) -> Aggregate:
        """The rows that ``mask`` selects, kernels numbered anew."""
        device, kind, name = self.device[mask], self.kind[mask], self.name[mask]
        return replace(
            self,
            device=device,
            kind=kind,
            name=name,
            metric=self.metric[mask],
            invocations=self.invocations[mask],
            minimum=self.minimum[mask],
            maximum=self.maximum[mask],
            mean=self.mean[mask],
            kernels_before=_number_in_device(device, kind, name),
        )

    @property
    def new_kernel(self) -> npt.NDArray[np.bool_]:
        """Mask of the first row of each kernel."""
        mask: npt.NDArray[np.bool_] = np.r_[True, (np.diff(self.kernels_before) != 0) | (np.diff(self.device) != 0)][
            : len(self.device)
        ]
        return mask

    def first_kernels(self, limit: int | None) -> Int64:
        """Rows of the first ``limit`` kernels of each device."""
        if limit is None:
            return np.arange(len(self.device))
        return np.flatnonzero(self.kernels_before < limit)

    def left_out(self, limit: int | None) -> tuple[str, ...]:
        if limit is None or not len(self.device):
            return ()
        hidden = self.kernels_before >= limit
        more = len(
            {(d, k) for d, k in zip(self.device[hidden].tolist(), self.kernels_before[hidden].tolist(), strict=True)}
        )
        return (f"... and {more} more kernels or regions",) if more else ()


def aggregate(result: Result, demangle: bool) -> Aggregate:
    """The metrics of a run by device, kernel name and metric, without a loop over rows."""
    counters, ranges, table = result.counters, result.metric_ranges, result.metrics
    metrics = list(counters)
    names = range_names(ranges, demangle)
    none = np.zeros(0, np.int64)
    parts = [counters.rows_of(name) for name in metrics]
    rows = np.concatenate([none, *(rows for rows, _ in parts)])
    where = np.concatenate([none, *(where for _, where in parts)])
    metric = np.repeat(np.arange(len(metrics)), [len(rows) for rows, _ in parts])
    value = finite(table["value"][rows])
    there = ~np.isnan(value)
    rows, where, metric, value = rows[there], where[there], metric[there], value[there]
    kind = ranges["kind"][where].astype(np.int64)
    # One launch is one invocation, however many samples its value was made of; under "sample" the counts of kernels
    # and regions are samples too.
    sampled = (ranges["strategy"][where] == code_of(STRATEGIES, "sample")) & (kind != SAMPLE)
    weight = np.where(sampled, ranges["occurrences"][where], table["count"][rows]).astype(np.int64)
    weight = np.where(kind == LAUNCH, 1, np.maximum(weight, 1))
    kind = np.where(kind == KERNEL, LAUNCH, kind)
    low, high = finite(table["min"][rows]), finite(table["max"][rows])
    single = (np.isnan(low) | np.isnan(high)) & (weight == 1)
    low, high = np.where(single, value, low), np.where(single, value, high)
    if not len(rows):
        empty = np.zeros(0)
        return Aggregate(list(names.names), metrics, none, none, none, none, none, empty, empty, empty, none)
    used, inverse = distinct_rows(ranges["device"][where], kind, dense(names.ids)[where], metric)
    first = first_rows(inverse, len(used))
    order = np.argsort(inverse, kind="stable")
    edges = np.r_[0, np.flatnonzero(np.diff(inverse[order])) + 1]
    count = np.add.reduceat(weight[order], edges)
    # Weights as shares, so that the mean of equal values is that value.
    mean = value[first] + np.add.reduceat(((value - value[first][inverse]) * weight)[order], edges) / count
    kernel = _number_in_device(used[:, 0], used[:, 1], used[:, 2])
    return Aggregate(
        names=list(names.names),
        metrics=metrics,
        device=used[:, 0],
        kind=used[:, 1],
        name=names.ids[where[first]],
        metric=used[:, 3],
        invocations=count,
        minimum=np.fmin.reduceat(low[order], edges),
        maximum=np.fmax.reduceat(high[order], edges),
        mean=mean,
        kernels_before=kernel,
    )


def _number_in_device(device: Int64, kind: Int64, name: Int64) -> Int64:
    """Number of each row's (kind, name) within its device, in order; rows are sorted by all three."""
    if not len(device):
        return np.zeros(0, np.int64)
    new = np.r_[True, (np.diff(device) != 0) | (np.diff(kind) != 0) | (np.diff(name) != 0)]
    number = np.cumsum(new) - 1
    first = np.r_[True, np.diff(device) != 0]
    start: Int64 = np.maximum.accumulate(np.where(first, number, 0))
    out: Int64 = number - start
    return out


def kernel_lines(result: Result, found: Aggregate, keep: Int64 | None = None) -> dict[str, list[Any]]:
    """Columns that say what each row is of: device, device_ordinal, kind, kernel, and "work", the line above its rows."""
    labels = device_labels(result)
    device, kind, ids = (
        (column if keep is None else column[keep]).tolist() for column in (found.device, found.kind, found.name)
    )
    kernel = [found.names[i] for i in ids]
    return {
        "device": [device_label(labels, ordinal) for ordinal in device],
        "device_ordinal": device,
        "kind": [_WORK.get(k, "Work: ").partition(":")[0].lower() for k in kind],
        "kernel": kernel,
        "work": [_WORK.get(k, "Work: ") + name for k, name in zip(kind, kernel, strict=True)],
    }


def _common(result: Result, found: Aggregate, keep: Int64) -> dict[str, Any]:
    unit_of = units(result)
    return kernel_lines(result, found, keep) | {
        "invocations": found.invocations[keep].tolist(),
        "min": found.minimum[keep].tolist(),
        "max": found.maximum[keep].tolist(),
        "avg": found.mean[keep].tolist(),
        "unit": [unit_of[found.metrics[i]] for i in found.metric[keep].tolist()],
    }
