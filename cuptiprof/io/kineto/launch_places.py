"""Where GPU work was launched: thread, region and operator of the call with its correlation ID."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.io.kineto.gpu_rows import GpuWork
from cuptiprof.io.kineto.operator_rows import Operators
from cuptiprof.io.kineto.region_rows import RegionRows
from cuptiprof.io.kineto.trace_columns import Int64


class LaunchPlaces:
    """Calls that caused GPU work, and where they were made.

    Attributes:
        orphans: work whose call is not in the file: its thread is unknown (0).
        cut: paths of operators that had no room.
    """

    def __init__(self, calls: dict[str, Any], work: list[GpuWork], operators: Operators, regions: RegionRows) -> None:
        self._calls, self._operators, self._regions = calls, operators, regions
        keys = np.asarray(calls["correlation_id"], np.int64)
        self._by_correlation = np.lexsort((calls["start"], keys))
        self._keys = keys[self._by_correlation]
        self._call_of = [self._calls_with(each.correlation) for each in work]
        # Of a runtime call and the driver's within it, which share an ID, both.
        causing = np.concatenate([each.correlation for each in work])
        self._caused = np.flatnonzero(np.isin(keys, causing) & (keys != 0))
        thread, start = calls["thread"][self._caused], calls["start"][self._caused]
        self._region = regions.at(thread, start)
        self._operator = operators.spans.at(thread, start)
        self.orphans = sum(int((calls_of < 0).sum()) for calls_of in self._call_of)
        self.cut = 0
        code, instance = regions.codes_and_instances(self._region)
        calls["region"], calls["region_instance"] = (np.zeros(len(calls["start"]), np.int64) for _ in range(2))
        calls["region"][self._caused], calls["region_instance"][self._caused] = code, instance
        for each, call in zip(work, self._call_of, strict=True):
            each.columns.update(self._columns(each, call))

    def _columns(self, work: GpuWork, call: Int64) -> dict[str, Int64]:
        known = np.flatnonzero(call >= 0)
        at = np.searchsorted(self._caused, call[known])
        thread = np.zeros(len(call), np.int64)
        thread[known] = self._calls["thread"][call[known]]
        operator, region = np.full(len(call), -1, np.int64), np.full(len(call), -1, np.int64)
        operator[known], region[known] = self._operator[at], self._region[at]
        # Of work without a call the file names the operator at least.
        orphan = np.flatnonzero(call < 0)
        operator[orphan] = self._operators.with_external(work.external[orphan])
        inside = orphan[operator[orphan] >= 0]
        made_by = operator[inside]
        region[inside] = self._regions.at(self._operators.thread[made_by], self._operators.start[made_by])
        code, instance = self._regions.codes_and_instances(region)
        return {"thread": thread, "region": code, "region_instance": instance, **self._of_operators(operator)}

    def _of_operators(self, row: Int64) -> dict[str, Int64]:
        out = {name: np.zeros(len(row), np.int64) for name in ("operator_instance", "operator", "backward")}
        known = np.flatnonzero(row >= 0)
        if len(known):
            used, which = np.unique(row[known], return_inverse=True)
            codes, cut = self._operators.paths(used)
            self.cut += cut
            out["operator_instance"][known] = self._operators.instance[row[known]]
            out["operator"][known] = codes[which.reshape(-1)]
            out["backward"][known] = self._operators.backward[row[known]]
        return out

    def _calls_with(self, correlation: Int64) -> Int64:
        """Row of the call with each correlation ID, the last one of several; -1: none."""
        if not len(self._keys):
            return np.full(len(correlation), -1, np.int64)
        at = np.maximum(np.searchsorted(self._keys, correlation, side="right") - 1, 0)
        found = (self._keys[at] == correlation) & (correlation != 0)
        return np.where(found, self._by_correlation[at], -1)
