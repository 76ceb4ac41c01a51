"""Who is who in the trace: the pid of the program, External ids, which device a context is on; and when."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.aggregate import Int64, Parts
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.io.chrome.clock import Clock


class Identity:
    """Look-ups that the event writers share.

    Attributes:
        pid: process ID of the program (of regions and markers, which do not carry one).
        region_base: External id of region instance i is ``region_base + i``; markers keep the ids they have.
        clock: the trace's times.
    """

    def __init__(self, result: Result, clock: Clock) -> None:
        self.clock = clock
        api, markers = result.tables["api_calls"], result.tables["markers"]
        pid = result.metadata.get("pid")
        if isinstance(pid, int) and pid > 0:
            self.pid = pid
        else:
            self.pid = int(np.bincount(api["process"]).argmax()) if len(api) and api["process"].max() < 1 << 24 else 0
        self.region_base = int(markers["id"].max()) if len(markers) else 0
        self._device_of_context = self._devices(result)
        self._call_order = np.argsort(api["correlation_id"], kind="stable")
        self._call_ids = api["correlation_id"][self._call_order]
        self.call_external_id = self._external_ids(result)

    def calls(self, correlation_id: Array) -> Int64:
        """Row of the API call with each correlation ID, -1 if it was not recorded."""
        if not len(self._call_ids):
            return np.full(len(correlation_id), -1, np.int64)
        at = np.minimum(np.searchsorted(self._call_ids, correlation_id), len(self._call_ids) - 1)
        found = (self._call_ids[at] == correlation_id) & (np.asarray(correlation_id) != 0)
        return np.where(found, self._call_order[at], -1)

    def external_ids(self, correlation_id: Array, region_instance: Array) -> Int64:
        """External id of GPU work: that of its launch call, else of its region; 0: none."""
        call = self.calls(correlation_id)
        own = self._region_ids(region_instance)
        if not len(self.call_external_id):
            return own
        return np.where(call >= 0, np.where(self.call_external_id[call] > 0, self.call_external_id[call], own), own)

    def device_of_context(self, context: Array) -> Int64:
        """Device of each context; 0 for one that was never seen."""
        known = np.fromiter(self._device_of_context.values(), np.int64, len(self._device_of_context))
        ids = np.fromiter(self._device_of_context.keys(), np.int64, len(self._device_of_context))
        if not len(ids):
            return np.zeros(len(context), np.int64)
        order = np.argsort(ids)
        at = np.minimum(np.searchsorted(ids, context, sorter=order), len(ids) - 1)
        return np.where(ids[order[at]] == context, known[order[at]], 0)

    def _region_ids(self, instance: Array) -> Int64:
        instance = np.asarray(instance, np.int64)
        return np.where(instance > 0, instance + self.region_base, 0)

    def _external_ids(self, result: Result) -> Int64:
        """External id of each API call: the innermost operator (marker with an id) around it, else its region."""
        api, markers = result.tables["api_calls"], result.tables["markers"]
        own = self._region_ids(api["region_instance"])
        has_id = np.flatnonzero(markers["id"] > 0)
        if not len(has_id) or not len(api):
            return own
        operators = markers.where(markers["id"] > 0)
        threads, which = renumbered(np.concatenate([operators["thread"], api["thread"]]))
        operators_of, calls_of = (Parts(part, len(threads)) for part in np.split(which, [len(operators)]))
        for thread in range(len(threads)):
            mine, rows = operators_of[thread], calls_of[thread]
            found = _innermost(
                operators["start"][mine], operators["end"][mine], operators["id"][mine], api["start"][rows]
            )
            own[rows] = np.where(found > 0, found, own[rows])
        return own

    @staticmethod
    def _devices(result: Result) -> dict[int, int]:
        devices: dict[int, int] = {}
        for name in ("kernels", "memcpys", "memsets", "contexts"):
            table = result.tables[name]
            pairs, _ = distinct_rows(table["context"], table["device"])
            devices.update(dict(pairs.tolist()))
        return devices


def _innermost(start: Array, end: Array, key: Array, times: Array) -> Int64:
    """Key of the innermost interval (of one thread, nested) that holds each time; 0: none."""
    order = np.lexsort((-end, start))
    starts, ends, keys = start[order].tolist(), end[order].tolist(), key[order].tolist()
    out = np.zeros(len(times), np.int64)
    by_time = np.argsort(times, kind="stable")
    stack: list[tuple[int, int]] = []
    i = 0
    found = []
    for time in times[by_time].tolist():
        while i < len(starts) and starts[i] <= time:
            while stack and stack[-1][0] <= starts[i]:
                stack.pop()
            stack.append((ends[i], keys[i]))
            i += 1
        while stack and stack[-1][0] <= time:
            stack.pop()
        found.append(stack[-1][1] if stack else 0)
    out[by_time] = found
    return out
