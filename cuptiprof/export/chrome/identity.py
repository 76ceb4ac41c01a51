"""Who is who in the trace: the pid of the program, External ids, which device a context is on; and when."""

from __future__ import annotations

import functools

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.nesting import innermost
from cuptiprof.analysis.work.context_devices import ContextDevices
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.trace_place import TracePlace


class Identity:
    """Look-ups that the event writers share.

    Attributes:
        pid: process ID of the program (of regions and markers, which do not carry one).
        region_base: External id of region instance i is ``region_base + i``; that of an operator is its instance.
        clock: the trace's times.
        place: among the ranks of the trace; None: the run is alone in it.
    """

    def __init__(self, result: Result, clock: Clock, place: TracePlace | None = None) -> None:
        self.clock, self.place = clock, place
        self._first_gpu = place.first_gpu if place is not None else 0
        self._first_arrow = place.first_arrow if place is not None else 0
        self._api = api = result.tables["api_calls"]
        pid = result.metadata.get("pid")
        if place is not None:
            self.pid = place.pid
        elif isinstance(pid, int) and pid > 0:
            self.pid = pid
        else:
            self.pid = int(np.bincount(api["process"]).argmax()) if len(api) and api["process"].max() < 1 << 24 else 0
        self._operators = result.tables["operators"]
        self.region_base = int(self._operators["instance"].max()) if len(self._operators) else 0
        self.device_of_context = ContextDevices(result)
        self._call_order = np.argsort(api["correlation_id"], kind="stable")
        self._call_ids = api["correlation_id"][self._call_order]

    @functools.cached_property
    def call_external_id(self) -> Int64:
        """External id of each API call: the innermost operator around it, else its region."""
        api, operators = self._api, self._operators
        own = self._region_ids(api["region_instance"])
        if not len(operators) or not len(api):
            return own
        row = innermost(operators["thread"], operators["start"], operators["end"], api["thread"], api["start"])
        return np.where(row >= 0, operators["instance"][row].astype(np.int64), own)

    def calls(self, correlation_id: Array) -> Int64:
        """Row of the API call with each correlation ID, -1 if it was not recorded."""
        if not len(self._call_ids):
            return np.full(len(correlation_id), -1, np.int64)
        at = np.minimum(np.searchsorted(self._call_ids, correlation_id), len(self._call_ids) - 1)
        found = (self._call_ids[at] == correlation_id) & (np.asarray(correlation_id) != 0)
        return np.where(found, self._call_order[at], -1)

    def pids(self, process: Array) -> Int64:
        """Process IDs, where 0 is the program's own."""
        if self.place is not None:
            return np.full(len(process), self.pid, np.int64)
        return np.where(process != 0, process.astype(np.int64), self.pid)

    def gpu_pids(self, device: Array) -> Int64:
        """What stands for a process ID where a GPU is one: its ordinal, unless other ranks have GPUs in the trace, too."""
        return np.asarray(device, np.int64) + self._first_gpu

    def gpu_of(self, pid: int) -> int:
        """The ordinal again."""
        return pid - self._first_gpu

    def arrows(self, key: Array) -> Int64:
        """Numbers of arrows, which no other rank of the trace has."""
        return np.asarray(key, np.int64) + self._first_arrow

    def external_ids(self, work: Table) -> Int64:
        """External id of GPU work: that of the operator, else of the region that launched it; 0: none."""
        region = self._region_ids(work["region_instance"])
        if "operator_instance" not in work:  # a graph's launch
            return region
        operator = work["operator_instance"].astype(np.int64)
        return np.where(operator > 0, operator, region)

    def _region_ids(self, instance: Array) -> Int64:
        instance = np.asarray(instance, np.int64)
        return np.where(instance > 0, instance + self.region_base, 0)
