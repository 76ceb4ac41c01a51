"""GPU work added up by whatever it has in common: its name, and columns that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.trees.region_tree import WORK_TABLES
from cuptiprof.analysis.work.gpu_work import NameIds, kernel_names, memcpy_names, traced_graphs
from cuptiprof.data.codes import distinct_rows, first_rows
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WorkSums:
    """Groups in the order of their first rows: kernels, copies, sets, whole graphs.

    Attributes:
        keys: by column, int64 of shape (groups,); "work" is an index into names.
        names: of kernels (demangled), copies, sets and graphs.
        launches, ns: of each group how many pieces of work, and their durations added up; int64 of shape (groups,).
        of_kernel: group of each row of ``kernels``.
    """

    keys: Mapping[str, Int64]
    names: list[str]
    launches: Int64
    ns: Int64
    of_kernel: Int64

    def __len__(self) -> int:
        return len(self.ns)

    def counted(self, result: Result, metric: str, weight: Array | None = None) -> Float64:
        """A hardware counter of each group: the sum over its kernels (times `weight`, one a kernel); NaN where none was counted."""
        values = result.counters.of_kernels(result.kernels, metric)
        measured = np.flatnonzero(~np.isnan(values))
        which = self.of_kernel[measured]
        each = values[measured] if weight is None else values[measured] * weight[measured]
        sums = np.bincount(which, each, minlength=len(self)).astype(np.float64)
        sums[np.bincount(which, minlength=len(self)) == 0] = np.nan
        return sums


def work_tables(result: Result) -> list[Table]:
    """The tables of GPU work; of whole graphs those whose nodes have no rows."""
    tables = [result.tables[name] for name in WORK_TABLES]
    return [*tables[:-1], tables[-1].where(traced_graphs(result))]


def grouped_work(result: Result, tables: Sequence[Table], columns: Mapping[str, Sequence[Array]]) -> WorkSums:
    """The work of `tables`, which are those of ``work_tables``; of each column an array of integers a table."""
    kernels, copies, sets, graphs = tables
    names: list[str] = []
    ids = []
    for found in (
        kernel_names(kernels, True),
        memcpy_names(copies),
        NameIds(np.zeros(len(sets), np.int64), ["[CUDA memset]"]),
        NameIds(np.zeros(len(graphs), np.int64), ["[CUDA graph]"]),
    ):
        ids.append(found.ids.astype(np.int64) + len(names))
        names += found.names
    joined = [np.concatenate([np.asarray(part, np.int64) for part in parts]) for parts in columns.values()]
    rows, which = distinct_rows(np.concatenate(ids), *joined)
    order = np.argsort(first_rows(which, len(rows)))
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows))
    group = place[which]
    durations = np.concatenate([table["end"] - table["start"] for table in tables])
    keys = dict(zip(("work", *columns), rows[order].T, strict=True))
    launches = np.bincount(group, minlength=len(rows)).astype(np.int64)
    return WorkSums(keys, names, launches, sum_by_group(group, durations, len(rows)), group[: len(kernels)])
