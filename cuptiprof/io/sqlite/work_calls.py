"""Which call caused which GPU work, over several processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuptiprof.io.sqlite.database import Int64
from cuptiprof.io.sqlite.nvtx_ranges import NvtxRanges
from cuptiprof.io.sqlite.own_scopes import OperatorRanges

WORK = ("kernels", "memcpys", "memsets", "graph_launches")


@dataclass
class Launches:
    """Tables in the making; those of work and calls have columns "process" and "correlation_id".

    Attributes:
        orphans: work whose call is not in the file: its thread is unknown (0).
    """

    tables: dict[str, dict[str, Any]]
    orphans: int = 0

    def place(self, ranges: NvtxRanges, operators: OperatorRanges) -> None:
        """Gives work the thread of its call and the range and operator open there, and calls that caused work that range."""
        calls = self.tables["api_calls"]
        keys = _keys(calls)
        order = np.lexsort((calls["start"], keys))
        ordered = keys[order]
        caused = np.zeros(len(keys), bool)
        for name in WORK:
            work = self.tables[name]
            wanted = _keys(work)
            # Of a driver's call within one of the runtime, the inner one, which began last.
            at = np.maximum(np.searchsorted(ordered, wanted, side="right") - 1, 0)
            found = (
                (ordered[at] == wanted) & (work["correlation_id"] != 0) if len(ordered) else np.zeros(len(wanted), bool)
            )
            self.orphans += int((~found).sum())
            call = order[at[found]] if len(ordered) else at[found]
            thread, start = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
            thread[found], start[found] = calls["thread"][call], calls["start"][call]
            work["thread"] = thread
            placed = ranges.placed(thread, start)
            if name != "graph_launches":
                placed |= operators.placed(thread, start)
            work.update({column: np.where(found, values, 0) for column, values in placed.items()})
            caused |= np.isin(keys, wanted[found])
        placed = ranges.placed(calls["thread"], calls["start"])
        calls.update({column: np.where(caused, values, 0) for column, values in placed.items()})

    def number_afresh(self) -> None:
        """Correlation IDs of several processes as those of one: they would mean different calls."""
        with_ids = [table for table in self.tables.values() if "correlation_id" in table and "process" in table]
        processes = np.unique(np.concatenate([table["process"] for table in with_ids]))
        if len(processes) < 2:
            return
        used = np.unique(np.concatenate([_keys(table) for table in with_ids]))
        for table in with_ids:
            fresh = np.searchsorted(used, _keys(table)) + 1
            table["correlation_id"] = np.where(table["correlation_id"] != 0, fresh, 0)


def _keys(table: dict[str, Any]) -> Int64:
    return (np.asarray(table["process"], np.int64) << 32) | np.asarray(table["correlation_id"], np.int64)
