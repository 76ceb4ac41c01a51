"""Where measured kernels lie under the roofs of their chip: each precision against each level of memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Counters, Float64
from cuptiprof.analysis.kernel_rules.launch_facts import kernel_of_range
from cuptiprof.analysis.work.counted import range_names
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array

LEVELS = ("dram", "l2", "l1tex")
_METRIC = re.compile(r"roofline_(\w+)_(achieved|peak)")
_DURATION = "gpu__time_duration.sum"


@dataclass(frozen=True)
class RooflinePoint:
    """A kernel (or region) by one precision and one level of memory. Rates are /s; None: not measured.

    Attributes:
        name: kernel, or path of the region. device: ordinal. launches: behind it.
        precision: "fp32", "tensor src fp16", ...; "": it did no work of any precision that was counted.
        level: of ``LEVELS``; "": no traffic was counted.
        time: of the launches, ns; 0: not known.
        work, peak_work: operations/s. traffic, peak_traffic: bytes/s.
        intensity: operations a byte. ridge: that at which the two roofs meet.
        bound: "memory" below the ridge, "compute" above it; "": not known.
        share: of what is attainable at this intensity, 0..1: min(peak work, intensity x peak traffic); without work the share of peak traffic.
    """

    name: str
    device: int
    launches: int
    precision: str
    level: str
    time: int
    work: float | None
    peak_work: float | None
    traffic: float | None
    peak_traffic: float | None
    intensity: float | None
    ridge: float | None
    bound: str
    share: float | None


def roofline(result: Result, demangle: bool = True) -> list[RooflinePoint]:
    """Of all kernels and regions whose metrics ``roofline_..._achieved`` were read; what took longest first.

    Williams, Waterman, Patterson, Roofline: an insightful visual performance model, CACM 52 (2009), by level of memory as in Nsight Compute's
    hierarchical charts. Rates of several launches are means by their time: that of the counter ``gpu__time_duration.sum``, else of the
    activity record; where a launch has none all count alike. Peaks are at the clock that ran.
    """
    counters = result.counters
    roofs = {m[1] for name in counters if (m := _METRIC.fullmatch(name))}
    precisions = [roof for roof in sorted(roofs) if roof not in LEVELS]
    ranges = result.metric_ranges
    rows = np.flatnonzero(ranges["kind"] != SAMPLE)
    if not roofs or not len(rows):
        return []
    names = range_names(ranges, demangle)
    found, which = distinct_rows(ranges["device"][rows], names.ids[rows])
    lasted = _durations(result, counters)[rows] * np.maximum(ranges["occurrences"][rows], 1)
    means = _Means(counters, rows, which, len(found), lasted)
    time = np.nan_to_num(np.bincount(which, lasted, len(found)))
    launches = np.bincount(which, ranges["occurrences"][rows], len(found)).astype(np.int64)
    values = {(roof, what): means.of(f"roofline_{roof}_{what}") for roof in roofs for what in ("achieved", "peak")}
    out = []
    for group in np.argsort(-time, kind="stable").tolist():
        known = {key: float(column[group]) for key, column in values.items() if np.isfinite(column[group])}
        head = (names.names[found[group, 1]], int(found[group, 0]), int(launches[group]))
        done = [p for p in precisions if known.get((p, "achieved"), 0) > 0]
        levels = [level for level in LEVELS if known.get((level, "achieved"), 0) > 0]
        if any(what == "achieved" for _, what in known):
            out += [_point(head, int(time[group]), p, level, known) for p in done or [""] for level in levels or [""]]
    return out


def _point(
    head: tuple[str, int, int], time: int, precision: str, level: str, known: dict[tuple[str, str], float]
) -> RooflinePoint:
    work, peak_work = known.get((precision, "achieved")), known.get((precision, "peak")) or None
    traffic, peak_traffic = known.get((level, "achieved")), known.get((level, "peak")) or None
    intensity = work / traffic if work and traffic else None
    ridge = peak_work / peak_traffic if peak_work and peak_traffic else None
    share = None
    if intensity is not None and work is not None and peak_work and peak_traffic:
        share = work / min(peak_work, intensity * peak_traffic)
    elif not precision and traffic is not None and peak_traffic:
        share = traffic / peak_traffic
    elif not level and work is not None and peak_work:
        share = work / peak_work
    bound = ""
    if intensity is not None and ridge is not None:
        bound = "memory" if intensity < ridge else "compute"
    return RooflinePoint(
        *head,
        precision.replace("_", " "),
        level,
        time,
        work,
        peak_work,
        traffic,
        peak_traffic,
        intensity,
        ridge,
        bound,
        share,
    )


def _durations(result: Result, counters: Counters) -> Float64:
    """Of each row of ``metric_ranges``, ns; NaN where nobody says."""
    ranges, kernels = result.metric_ranges, result.kernels
    kernel = kernel_of_range(result)
    recorded = np.full(len(ranges), np.nan)
    known = kernel >= 0
    recorded[known] = (kernels["end"] - kernels["start"])[kernel[known]]
    counted = counters[_DURATION] if _DURATION in counters else np.full(len(ranges), np.nan)
    lasted = np.where(counted > 0, counted, recorded)
    return np.where(lasted > 0, lasted, np.nan)


class _Means:
    """Means of metrics by group, weighted by time where all of the group's launches have one."""

    def __init__(self, counters: Counters, rows: Array, which: Array, groups: int, lasted: Float64) -> None:
        self._counters, self._rows, self._which, self._groups = counters, rows, which, groups
        untimed = np.bincount(which, np.isnan(lasted), groups) > 0
        self._weight = np.where(untimed[which], 1.0, lasted)

    def of(self, metric: str) -> Float64:
        """One value a group; NaN where the metric was not read."""
        if metric not in self._counters:
            return np.full(self._groups, np.nan)
        value = self._counters[metric][self._rows]
        there = np.isfinite(value)
        weight = np.bincount(self._which, np.where(there, self._weight, 0), self._groups)
        total = np.bincount(self._which, np.where(there, value, 0) * self._weight, self._groups)
        means: Float64 = np.divide(total, weight, out=np.full(self._groups, np.nan), where=weight > 0)
        return means
