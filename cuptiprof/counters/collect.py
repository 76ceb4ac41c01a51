"""From the native rows of counters to the tables ``metric_ranges`` and ``metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.counters.plan import CounterPlan
from cuptiprof.data.codes import distinct_rows, first_rows
from cuptiprof.data.enums import KERNEL, STRATEGIES, code_of
from cuptiprof.data.tables import Array, Strings, Table
from cuptiprof.metrics import Metric

_GEOMETRY = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
Rows = Mapping[str, Array]


def make_tables(plan: CounterPlan, rows: Rows, text_of: Callable[[int], str], strings: Strings) -> dict[str, Table]:
    """``metric_ranges`` and ``metrics``.

    Args:
        rows: what ``Session.take_counters()`` gave: one row a range that was read, in one pass group.
        text_of: ID -> text of names and regions.
        strings: string list of the run; grows.
    """
    if plan.strategy == "iterate":
        ranges, values = _over_occurrences(plan, rows)
    elif len(plan.groups) > 1:
        ranges, values = _over_groups(plan, rows)
    else:
        ranges, values = _one_by_one(plan, rows)
    codes = {int(i): strings.code(text_of(int(i))) for i in np.unique(np.concatenate([rows["name"], rows["region"]]))}
    count = len(ranges["start"])
    for column in ("name", "region"):
        ranges[column] = np.array([codes[int(i)] for i in ranges[column]], np.uint32)
    ranges["id"] = np.arange(1, count + 1, dtype=np.uint32)
    ranges["strategy"] = np.full(count, code_of(STRATEGIES, plan.strategy), np.uint8)
    values["metric"] = np.array([strings.code(m.name) for m in plan.metrics], np.uint32)[values["metric"]]
    return {
        "metric_ranges": Table.from_columns("metric_ranges", ranges, strings, rows=count),
        "metrics": Table.from_columns("metrics", values, strings, rows=len(values["value"])),
    }


def _matrix(plan: CounterPlan, rows: Rows, group: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """Indices of a group's rows, and their values: (rows, metrics of the group)."""
    index = np.flatnonzero(rows["group"] == group)
    width = len(plan.groups[group].metrics)
    at = rows["offsets"][index].astype(np.intp)[:, None] + np.arange(width, dtype=np.intp)
    return index, rows["values"][at] if len(index) else np.empty((0, width))


def _base_columns(rows: Rows, index: npt.NDArray[np.intp]) -> dict[str, Array]:
    """What ``metric_ranges`` takes from these native rows as it is."""
    out = {
        c: rows[c][index] for c in ("start", "end", "name", "region", "thread", "device", "context", "stream", "kind")
    }
    out |= {c: rows[c][index] for c in (*_GEOMETRY, "passes")}
    out["correlation_id"] = rows["correlation"][index]
    out["occurrences"] = np.ones(len(index), np.uint32)
    return out


def _long(values: npt.NDArray[np.float64], groups: Array) -> dict[str, Array]:
    """Values that were read once, (ranges, metrics), as columns of ``metrics``. `groups`: of each metric, from 1."""
    count, width = values.shape
    flat = values.reshape(-1)
    return {
        "value": flat,
        "min": flat,
        "max": flat,
        "spread": np.full(flat.shape, np.nan),
        "metric": np.tile(np.arange(width), count),
        "range": np.repeat(np.arange(1, count + 1, dtype=np.uint32), width),
        "count": (~np.isnan(flat)).astype(np.uint32),
        "group": np.tile(groups.astype(np.uint16), count),
        "from_means": np.zeros(flat.shape, np.uint8),
    }


def _group_of(plan: CounterPlan) -> dict[str, int]:
    """Perfworks name -> the first group that reads it."""
    return {name: g for g, group in reversed(list(enumerate(plan.groups))) for name in group.metrics}


def _groups_of_metrics(plan: CounterPlan) -> Array:
    """For each metric its pass group from 1; 0 when its inputs are in several."""
    where = _group_of(plan)
    used = [{where[i] for i in m.inputs} for m in plan.metrics]
    return np.array([u.pop() + 1 if len(u) == 1 else 0 for u in used], np.uint16)


def _evaluate(metrics: tuple[Metric, ...], inputs: Mapping[str, npt.NDArray[np.float64]], count: int) -> Any:
    """(ranges, metrics), from the perfworks values of `count` ranges."""
    out = np.empty((count, len(metrics)))
    for j, m in enumerate(metrics):
        out[:, j] = m.value(inputs)
    return out


def _one_by_one(plan: CounterPlan, rows: Rows) -> tuple[dict[str, Array], dict[str, Array]]:
    """Each native row is a range with all values: there is one group."""
    index, values = _matrix(plan, rows, 0)
    inputs = {name: values[:, j] for j, name in enumerate(plan.groups[0].metrics)}
    table = _evaluate(plan.metrics, inputs, len(index))
    return _base_columns(rows, index), _long(table, np.ones(len(plan.metrics), np.uint16))


def _over_groups(plan: CounterPlan, rows: Rows) -> tuple[dict[str, Array], dict[str, Array]]:
    """Repeated regions read in several configurations: the n-th region of a run is the n-th of the others."""
    first, _ = _matrix(plan, rows, 0)
    inputs: dict[str, npt.NDArray[np.float64]] = {}
    position = {(int(rows["sequence"][i]), int(rows["name"][i])): k for k, i in enumerate(first)}
    passes = np.zeros(len(first), np.uint16)
    for g, group in enumerate(plan.groups):
        index, values = _matrix(plan, rows, g)
        at = np.array([position.get((int(rows["sequence"][i]), int(rows["name"][i])), -1) for i in index], np.intp)
        known = at >= 0
        passes[at[known]] += rows["passes"][index[known]]
        for j, name in enumerate(group.metrics):
            column = inputs.setdefault(name, np.full(len(first), np.nan))
            column[at[known]] = values[known, j]
    ranges = _base_columns(rows, first)
    ranges["passes"] = passes
    return ranges, _long(_evaluate(plan.metrics, inputs, len(first)), _groups_of_metrics(plan))


def _over_occurrences(plan: CounterPlan, rows: Rows) -> tuple[dict[str, Array], dict[str, Array]]:
    """One row a kernel key (device, name, region, grid, block): mean, spread and range over its occurrences.

    A metric whose inputs lie in one group is computed for each occurrence, then averaged. One with inputs of several
    groups is computed from their means and marked.
    """
    key_columns = ("device", "name", "region", *_GEOMETRY)
    used, which = distinct_rows(*(rows[c] for c in key_columns))
    first = first_rows(which, len(used))
    order = np.argsort(first, kind="stable")  # by first appearance
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    key, first = rank[which], first[order]
    count = len(first)

    ranges = _base_columns(rows, first)
    ranges["kind"] = np.full(count, KERNEL, np.uint8)
    ranges["correlation_id"] = np.zeros(count, np.uint32)
    ranges["occurrences"] = np.bincount(key, minlength=count).astype(np.uint32)
    end = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(end, key, rows["end"])
    ranges["end"] = end

    seen = np.zeros((count, len(plan.groups)), bool)
    per_group: list[tuple[Array, Array]] = []  # key of each row, values
    means: dict[str, npt.NDArray[np.float64]] = {}
    samples: dict[str, npt.NDArray[np.int64]] = {}
    for g, group in enumerate(plan.groups):
        index, values = _matrix(plan, rows, g)
        of = key[index]
        seen[of, g] = True
        per_group.append((of, values))
        for j, name in enumerate(group.metrics):
            means[name], _, _, _, samples[name] = statistics(values[:, j], of, count)
    ranges["passes"] = seen.sum(axis=1).astype(np.uint16)

    groups = _groups_of_metrics(plan)
    columns: dict[str, list[Array]] = {c: [] for c in ("value", "min", "max", "spread", "count")}
    for m, group in zip(plan.metrics, groups, strict=True):
        if group:
            of, values = per_group[int(group) - 1]
            inputs = {name: values[:, j] for j, name in enumerate(plan.groups[int(group) - 1].metrics)}
            each = np.broadcast_to(m.value(inputs), of.shape)
            mean, low, high, spread, n = statistics(each, of, count)
        else:
            mean = np.broadcast_to(m.value(means), count)
            low = high = spread = np.full(count, np.nan)
            n = np.min([samples[i] for i in m.inputs], axis=0)
        for c, column in zip(columns, (mean, low, high, spread, n), strict=True):
            columns[c].append(column)
    width = len(plan.metrics)
    stacked = {c: np.stack(v, axis=1).reshape(-1) for c, v in columns.items()}
    return ranges, {
        **stacked,
        "count": stacked["count"].astype(np.uint32),
        "metric": np.tile(np.arange(width), count),
        "range": np.repeat(np.arange(1, count + 1, dtype=np.uint32), width),
        "group": np.tile(groups, count),
        "from_means": np.tile((groups == 0).astype(np.uint8), count),
    }


def statistics(values: Any, key: Any, count: int) -> tuple[Array, Array, Array, Array, Any]:
    """Mean, min, max, standard deviation (n - 1) and number of the values of each key; NaN values do not count."""
    good = ~np.isnan(values)
    values, key = values[good], key[good]
    n = np.bincount(key, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(key, values, count) / n
        deviation = np.sqrt(np.bincount(key, (values - mean[key]) ** 2, count) / (n - 1))
    deviation[n < 2] = np.nan
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, key, values)
    np.maximum.at(high, key, values)
    low[n == 0] = high[n == 0] = np.nan
    return mean, low, high, deviation, n
