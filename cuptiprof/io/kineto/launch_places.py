"""Where GPU work was launched: thread, region and operator of the call with its correlation ID."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.data.codes import distinct
from cuptiprof.io.kineto.gpu_rows import GpuWork
from cuptiprof.io.kineto.operator_rows import Operators
from cuptiprof.io.kineto.region_rows import RegionRows
from cuptiprof.io.kineto.stack_rows import StackRows
from cuptiprof.io.kineto.trace_columns import Int64


class LaunchPlaces:
    """Calls that caused GPU work, and where they were made.

    Attributes:
        orphans: work whose call is not in the file: its thread is unknown (0).
        cut: paths of operators that had no room.
    """

    def __init__(
        self, calls: dict[str, Any], work: list[GpuWork], operators: Operators, regions: RegionRows, stacks: StackRows
    ) -> None:
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
        self._stacks = stacks.at(thread, start)
        self._operator = operators.spans.at(thread, start)
        self.orphans = sum(int((calls_of < 0).sum()) for calls_of in self._call_of)
        code, instance = regions.codes_and_instances(self._region)
        calls["region"], calls["region_instance"] = (np.zeros(len(calls["start"]), np.int64) for _ in range(2))
        calls["region"][self._caused], calls["region_instance"][self._caused] = code, instance
        found = [self._found(each, call) for each, call in zip(work, self._call_of, strict=True)]
        rows = [operator for operator, _ in found]
        launching = distinct(np.concatenate(rows))
        self._launching = launching[launching >= 0]
        self._paths, self.cut = operators.paths(self._launching)
        for each, call, (operator, region) in zip(work, self._call_of, found, strict=True):
            code, instance = regions.codes_and_instances(region)
            thread = np.where(call >= 0, calls["thread"][call], 0) if len(calls["thread"]) else np.zeros_like(call)
            each.columns.update(
                {
                    "thread": thread,
                    "region": code,
                    "region_instance": instance,
                    **self._of_operators(operator),
                    **self._python(call, operator),
                }
            )

    def _found(self, work: GpuWork, call: Int64) -> tuple[Int64, Int64]:
        """Rows of the operator and the region in which each was launched; -1: none."""
        operator, region = np.full(len(call), -1, np.int64), np.full(len(call), -1, np.int64)
        known = np.flatnonzero(call >= 0)
        at = np.searchsorted(self._caused, call[known])
        operator[known], region[known] = self._operator[at], self._region[at]
        # Of work without a call the file names the operator at least.
        orphan = np.flatnonzero(call < 0)
        if len(orphan):
            operator[orphan] = self._operators.with_external(work.external[orphan])
            inside = orphan[operator[orphan] >= 0]
            made_by = operator[inside]
            region[inside] = self._regions.at(self._operators.thread[made_by], self._operators.start[made_by])
        return operator, region

    def _python(self, call: Int64, operator: Int64) -> dict[str, Int64]:
        """Where Python stood: at the call, else what is said of the operator."""
        out = {}
        known, made = np.flatnonzero(call >= 0), np.flatnonzero(operator >= 0)
        at = np.searchsorted(self._caused, call[known])
        for column, of_calls in self._stacks.items():
            values = np.zeros(len(call), np.int64)
            values[made] = self._operators.place_of(column)[operator[made]]
            values[known] = np.where(of_calls[at] > 0, of_calls[at], values[known])
            out[column] = values
        return out

    def _of_operators(self, row: Int64) -> dict[str, Int64]:
        out = {name: np.zeros(len(row), np.int64) for name in ("operator_instance", "operator", "backward")}
        known = np.flatnonzero(row >= 0)
        if len(known):
            out["operator_instance"][known] = self._operators.instance[row[known]]
            out["operator"][known] = self._paths[np.searchsorted(self._launching, row[known])]
            out["backward"][known] = self._operators.backward[row[known]]
        return out

    def _calls_with(self, correlation: Int64) -> Int64:
        """Row of the call with each correlation ID, the last one of several; -1: none."""
        if not len(self._keys):
            return np.full(len(correlation), -1, np.int64)
        at = np.maximum(np.searchsorted(self._keys, correlation, side="right") - 1, 0)
        found = (self._keys[at] == correlation) & (correlation != 0)
        return np.where(found, self._by_correlation[at], -1)
