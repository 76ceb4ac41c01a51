"""Runs of one program, each with one group of counters, made into one run as if all had been read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec.structs
import numpy as np

from cuptiprof.analysis.counter_values.counter_record import CounterRecord, MetricInfo
from cuptiprof.analysis.counter_values.kernel_counters import Float64, Int64, finite, match
from cuptiprof.counters.plan import info_of
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.enums import SAMPLE, STRATEGIES, code_of
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Strings, Table, schema
from cuptiprof.errors import ResultError
from cuptiprof.metrics import Metric

APPLICATION = code_of(STRATEGIES, "application")

_SIZES = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
MATCHES: Mapping[str, tuple[str, ...]] = {
    "name": ("kind", "device", "name"),
    "grid": ("kind", "device", "name", "region", *_SIZES),
    "all": ("kind", "device", "name", "region", *_SIZES, "context", "stream"),
}
"""ncu's --app-replay-match: what two launches of different runs must share. Those that do are paired in their order."""


def merge_application_runs(
    runs: Sequence[Result], *, match_by: str = "grid", metrics: Sequence[Metric] | None = None
) -> Result:
    """The first run, with the counters of all of them.

    The n-th launch of a kernel (by name, region, grid and block, see :data:`MATCHES`) is taken for the same in every run;
    so is the n-th pass of a region. What has no counterpart in the first run is left out, and counted in a note.

    Args:
        runs: one a pass of the program, in the order of the pass groups.
        match_by: "name", "grid" or "all".
        metrics: what was asked for, if the runs read its inputs: values are computed from those of all runs.

    Raises:
        ResultError: no runs, or an unknown ``match_by``.
    """
    if not runs:
        raise ResultError("no runs to merge")
    if match_by not in MATCHES:
        raise ResultError(f"unknown match {match_by!r}", hint=f"one of: {', '.join(MATCHES)}")
    first = runs[0]
    strings = Strings(first.metrics.strings)
    partners, notes = _pair(runs, MATCHES[match_by], strings)
    columns = _values(runs, partners, strings)
    if metrics is not None:
        columns = _compute(first, columns, metrics, strings)
    tables = {name: _rebased(table, strings) for name, table in first.tables.items()}
    tables["kernels"].configs = tables["launch_configs"]
    ranges = {c: tables["metric_ranges"].codes(c) for c in schema()["metric_ranges"]}
    ranges["strategy"] = np.full(len(first.metric_ranges), APPLICATION, np.uint8)
    ranges["passes"] = _passes(runs, partners)
    tables["metric_ranges"] = Table("metric_ranges", ranges, strings)
    tables["metrics"] = Table("metrics", columns, strings)
    metadata = {**first.metadata, "counters": _record(runs, notes, metrics).metadata()}
    return Result(tables, metadata, first.losses)


def _pair(runs: Sequence[Result], keys: tuple[str, ...], strings: Strings) -> tuple[list[Int64], list[str]]:
    """For each run the row of the first run's ``metric_ranges`` that each of its rows stands for (-1: none), and notes."""
    paired = [run.metric_ranges.codes("kind") != SAMPLE for run in runs]
    numbers = [np.stack([_codes(run.metric_ranges, key, strings) for key in keys], axis=1) for run in runs]
    sizes = [len(part) for part in numbers]
    _, key = distinct_rows(*np.concatenate(numbers).T)
    edges = np.cumsum([0, *sizes])
    width = max(sizes, default=0) + 1
    identities = []
    for i, run in enumerate(runs):
        mine = key.reshape(-1)[edges[i] : edges[i + 1]].astype(np.int64)
        identities.append(mine * width + _occurrence(mine, run.metric_ranges["start"]))
    partners = [np.arange(sizes[0])]
    notes = []
    for i, identity in enumerate(identities[1:], 2):
        rows = match(identity, identities[0])
        rows[~paired[i - 1]] = -1
        partners.append(rows)
        own, others = int(paired[i - 1].sum()), int(paired[0].sum())
        both = int((rows >= 0).sum())
        if both < max(own, others):
            notes.append(
                f"run {i} of the program differed: {others - both} of {others} launches of run 1 had no counterpart in it "
                f"(no values), {own - both} of its own {own} none in run 1 (left out)"
            )
        if runs[i - 1].losses:
            notes.append(f"run {i} of the program: {runs[i - 1].losses.line()}")
    return partners, notes


def _codes(table: Table, column: str, strings: Strings) -> Int64:
    """A column as integers that mean the same in every run."""
    values = table.codes(column)
    if not schema()[table.name][column].is_text:
        return values.astype(np.int64)
    return _mapped(table, values, strings).astype(np.int64)


def _mapped(table: Table, codes: Array, strings: Strings) -> Array:
    """String indices of a table as indices into ``strings``."""
    used, which = renumbered(codes)
    new = np.array([strings.code(table.strings[code]) for code in used.tolist()], np.uint32)
    out: Array = new[which] if len(new) else np.zeros(len(codes), np.uint32)
    return out


def _occurrence(key: Int64, start: Array) -> Int64:
    """Which occurrence of its key each row is, 0, 1, ..., by start."""
    order = np.lexsort((np.arange(len(key)), start, key))
    ordered = key[order]
    new = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(key)])
    out = np.empty(len(key), np.int64)
    out[order] = np.arange(len(key)) - np.repeat(new, np.diff(np.r_[new, len(key)]))
    return out


def _values(runs: Sequence[Result], partners: Sequence[Int64], strings: Strings) -> dict[str, Array]:
    """Columns of ``metrics`` of all runs over the ranges of the first; a metric that two runs read comes from the earlier."""
    ids = runs[0].metric_ranges.codes("id")
    parts: dict[str, list[Array]] = {column: [] for column in schema()["metrics"]}
    seen: set[int] = set()
    for i, (run, partner) in enumerate(zip(runs, partners, strict=True)):
        table = run.metrics
        codes = _mapped(table, table.codes("metric"), strings)
        own = match(table.codes("range"), run.metric_ranges.codes("id"))
        row = np.where(own >= 0, partner[own] if len(partner) else -1, -1)
        keep = np.flatnonzero((row >= 0) & ~np.isin(codes, list(seen)))
        seen |= set(np.unique(codes).tolist())
        for column in parts:
            values = table.codes(column)[keep]
            if column == "metric":
                values = codes[keep]
            elif column == "range":
                values = ids[row[keep]]
            elif column == "group":
                values = np.full(len(keep), i + 1, np.uint16)
            parts[column].append(values)
    return {column: np.concatenate(values) for column, values in parts.items()}


def _compute(first: Result, read: Mapping[str, Array], metrics: Sequence[Metric], strings: Strings) -> dict[str, Array]:
    """The metrics that were asked for, from the values that were read. One whose inputs come from several runs is marked."""
    ranges = first.metric_ranges
    row = match(read["range"], ranges.codes("id"))
    inputs: dict[str, Float64] = {}
    groups: dict[str, int] = {}
    for code in np.unique(read["metric"]).tolist():
        mine = read["metric"] == code
        inputs[strings[code]] = _spread(row[mine], finite(read["value"][mine]), len(ranges))
        groups[strings[code]] = int(read["group"][mine][0])
    out: dict[str, list[Array]] = {column: [] for column in read}
    for metric in metrics:
        missing = np.full(len(ranges), np.nan)
        value = np.broadcast_to(metric.value({name: inputs.get(name, missing) for name in metric.inputs}), len(ranges))
        there = np.flatnonzero(~np.isnan(value))
        used = {groups[name] for name in metric.inputs if name in groups}
        several = len(used) > 1
        n = len(there)
        fields = {
            "value": value[there],
            "min": value[there],
            "max": value[there],
            "spread": np.full(n, np.nan),
            "metric": np.full(n, strings.code(metric.name), np.uint32),
            "range": ranges.codes("id")[there],
            "count": np.ones(n, np.uint32),
            "group": np.full(n, 0 if several else min(used, default=0), np.uint16),
            "from_means": np.full(n, several, np.uint8),
        }
        for column in out:
            out[column].append(fields[column])
    return {
        column: np.concatenate(values) if values else np.empty(0, schema()["metrics"][column].dtype)
        for column, values in out.items()
    }


def _spread(row: Int64, value: Float64, size: int) -> Float64:
    """Values at their rows; NaN elsewhere."""
    out = np.full(size, np.nan)
    out[row] = value
    return out


def _rebased(table: Table, strings: Strings) -> Table:
    """The same table over a string list that begins with its own."""
    return Table(table.name, {c: table.codes(c) for c in schema()[table.name]}, strings)


def _passes(runs: Sequence[Result], partners: Sequence[Int64]) -> Array:
    """Times each piece of work of the first run was measured, over all runs."""
    total = np.zeros(len(runs[0].metric_ranges), np.int64)
    for run, partner in zip(runs, partners, strict=True):
        known = np.flatnonzero(partner >= 0)
        np.add.at(total, partner[known], np.maximum(run.metric_ranges["passes"][known].astype(np.int64), 1))
    return np.minimum(total, np.iinfo(np.uint16).max).astype(np.uint16)


def _record(runs: Sequence[Result], notes: list[str], asked: Sequence[Metric] | None) -> CounterRecord:
    """What all runs say of their counters, in one."""
    plans = [plan for run in runs if (plan := CounterRecord.of(run.metadata)) is not None]
    infos: dict[str, MetricInfo] = {}
    for info in (info for plan in plans for info in plan.metrics) if asked is None else map(info_of, asked):
        infos.setdefault(info.name, info)
    return msgspec.structs.replace(
        plans[0] if plans else CounterRecord(),
        strategy="application",
        simulated=any(plan.simulated for plan in plans),
        passes=sum(plan.passes or 0 for plan in plans) or len(runs),
        metrics=list(infos.values()),
        groups=[group for plan in plans for group in plan.groups],
        notes=list(dict.fromkeys([*(note for plan in plans for note in plan.notes), *notes])),
    )
