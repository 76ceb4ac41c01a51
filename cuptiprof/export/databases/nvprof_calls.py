"""Calls of the runtime and the driver as nvprof's tables, such that PyTorch's ``load_nvprof`` reads them.

It takes every runtime call with a kernel for ``cudaLaunchKernel`` (callback ID 211) and fails at any other, as at a call with two
kernels. So a runtime call that launched one kernel (``cudaLaunchKernelExC``) is written as 211, and one that launched several, a graph's,
as the driver's ``cuGraphLaunch`` that it made: its kernels are in the file, and PyTorch's reader has no operator for them.
"""

from __future__ import annotations

import numpy as np

from cuptiprof.data.callback_ids import callback_names
from cuptiprof.data.codes import Int64, renumbered
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.databases.database_writer import Column
from cuptiprof.export.databases.nvprof_run import NvprofRun
from cuptiprof.export.databases.nvprof_schema import GRAPH_LAUNCH, KIND, LAUNCH


def add_calls(run: NvprofRun) -> None:
    """Rows of ``RUNTIME`` and ``DRIVER``."""
    table = run.result.tables["api_calls"]
    launched = _kernels_of(table["correlation_id"], run.result.tables["kernels"]["correlation_id"])
    is_driver = table["domain"] != 0
    cbid = np.where(is_driver, _callback_ids(table, "driver"), _callback_ids(table, "runtime"))
    cbid = np.where(~is_driver & (launched == 1), LAUNCH, cbid)
    cbid = np.where(~is_driver & (launched > 1), GRAPH_LAUNCH, cbid)
    is_driver |= launched > 1
    for kind, rows in (("RUNTIME", np.flatnonzero(~is_driver)), ("DRIVER", np.flatnonzero(is_driver))):
        part = table.where(rows)
        columns: dict[str, Column] = {
            "cbid": cbid[rows],
            **run.span(part),
            "processId": run.who.pids(part["process"]),
            "threadId": part["thread"],
            "correlationId": part["correlation_id"],
            "returnValue": part["return_value"],
        }
        run.add(KIND + kind, len(rows), columns)


def _kernels_of(calls: Array, kernels: Array) -> Int64:
    """How many kernels have the correlation ID of each call: of the driver's within the runtime's, both."""
    used, which = renumbered(kernels)
    if not len(used):
        return np.zeros(len(calls), np.int64)
    counts = np.bincount(which, minlength=len(used))
    at = np.minimum(np.searchsorted(used, calls), len(used) - 1)
    return np.where((used[at] == calls) & (calls != 0), counts[at], 0)


def _callback_ids(table: Table, domain: str) -> Int64:
    """Those of the calls' names where the run has none (it is from elsewhere); 0: not known."""
    numbers = {name: number for (where, number), name in callback_names().items() if where == domain}
    used, which = renumbered(table.codes("name"))
    by_name = np.array([numbers.get(table.strings[code], 0) for code in used.tolist()], np.int64)
    found = by_name[which] if len(by_name) else which.astype(np.int64)
    return np.where(table["cbid"] != 0, table["cbid"].astype(np.int64), found)
