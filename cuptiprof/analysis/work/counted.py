"""What the rows of ``metric_ranges`` are to a reader: names, sizes, devices. Shared by the views of counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.counter_values.kernel_counters import Int64
from cuptiprof.analysis.work.gpu_work import NameIds, kernel_names
from cuptiprof.data.enums import KERNEL, LAUNCH, RANGE_KINDS, REGION
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.text.metric_units import infer_unit

NOTHING = "No counters were recorded."


def range_names(ranges: Table, demangle: bool) -> NameIds:
    """Kernels by the name people know them by, regions by their path; ids of the two kinds differ."""
    kernels = kernel_names(ranges, demangle)
    regions = kernel_names(ranges, False)
    is_region = ranges.codes("kind") == REGION
    return NameIds(np.where(is_region, regions.ids + len(kernels.names), kernels.ids), [*kernels.names, *regions.names])


def device_labels(result: Result) -> dict[int, str]:
    """Device ordinal -> nvprof's ``Tesla V100 (0)``."""
    devices = result.tables["devices"]
    return {
        int(ordinal): f"{name} ({ordinal})" for ordinal, name in zip(devices["device"], devices["name"], strict=True)
    }


def device_label(labels: dict[int, str], ordinal: int) -> str:
    return labels.get(ordinal, f"GPU ({ordinal})")


def units(result: Result) -> dict[str, str]:
    """Metric -> unit, from the plan or from its name."""
    counters = result.counters
    return {name: infer_unit(name, counters.info(name).unit) for name in counters}


def dims(ranges: Table, what: str, rows: Array) -> list[Any]:
    """(x, y, z) of the grids or blocks; None for what is not a kernel."""
    sizes = zip(*(ranges[f"{what}_{axis}"][rows].tolist() for axis in "xyz"), strict=True)
    is_kernel = np.isin(ranges["kind"][rows], (LAUNCH, KERNEL)).tolist()
    return [size if kernel else None for size, kernel in zip(sizes, is_kernel, strict=True)]


def texts(table: Table, column: str, rows: Array) -> list[str | None]:
    """A text column, None for the empty text."""
    strings = table.strings
    return [strings[code] or None for code in table.codes(column)[rows].tolist()]


def kind_names(kinds: Array) -> list[str]:
    return [RANGE_KINDS.get(kind, "unknown") for kind in kinds.tolist()]


def dense(codes: Array) -> Int64:
    """Codes renumbered 0, 1, 2, ... in their order of first appearance."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    out: Int64 = rank[inverse.reshape(-1)]
    return out
