"""Processes and threads as Nsight Systems numbers them: 16 bits of the machine, 24 of the process, 24 of the thread."""

from __future__ import annotations

import numpy as np

from cuptiprof.data.codes import Int64, distinct, distinct_rows, renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array
from cuptiprof.export.chrome.identity import Identity

MACHINE = 1 << 48
"""what files of nsys have there for the machine itself"""
_LOW24 = 0xFFFFFF


class GlobalIds:
    """``globalPid`` and ``globalTid`` of a run's rows.

    A thread's number beyond 24 bits (of a trace from elsewhere; Linux's have 22) gets one from the upper end that is free.
    """

    def __init__(self, result: Result, who: Identity) -> None:
        self._who = who
        tables = result.tables
        self._main = who.pid & _LOW24
        self._api_process = who.pids(tables["api_calls"]["process"]) & _LOW24
        pairs, _ = distinct_rows(tables["api_calls"]["thread"], self._api_process)
        self._of_thread = dict(pairs.tolist())
        self._renamed = _renamed([tables[name]["thread"] for name in ("api_calls", "regions", "operators", "markers")])

    def processes(self) -> list[int]:
        """Process IDs of the run, the program's first."""
        return list(dict.fromkeys([self._main, *distinct(self._api_process).tolist()]))

    @staticmethod
    def pid(process: Array) -> Int64:
        """``globalPid`` of process IDs."""
        return MACHINE | (np.asarray(process, np.int64) << 24)

    def of_work(self, correlation_id: Array) -> Int64:
        """``globalPid`` of GPU work: that of its call, else the program's."""
        call = self._who.calls(correlation_id)
        if not len(self._api_process):
            return np.full(len(call), MACHINE | self._main << 24)
        return self.pid(np.where(call >= 0, self._api_process[call], self._main))

    def of_calls(self, thread: Array) -> Int64:
        """``globalTid`` of the rows of ``api_calls``."""
        return self.pid(self._api_process) | self._threads(thread)

    def of_threads(self, thread: Array) -> Int64:
        """``globalTid`` of what happened on threads: their process is that of their calls, else the program's."""
        used, which = renumbered(thread)
        process = np.array([self._of_thread.get(t, self._main) for t in used.tolist()], np.int64)
        return self.pid(process[which]) | self._threads(thread)

    def _threads(self, thread: Array) -> Int64:
        plain = np.asarray(thread, np.int64)
        if not self._renamed:
            return plain & _LOW24
        used, which = renumbered(plain)
        return np.array([self._renamed.get(t, t & _LOW24) for t in used.tolist()], np.int64)[which]


def _renamed(threads: list[Array]) -> dict[int, int]:
    """The threads that do not fit, and what they are called instead."""
    used = np.unique(np.concatenate([distinct(column) for column in threads]))
    taken = set(used[used <= _LOW24].tolist())
    free = (number for number in range(_LOW24, 0, -1) if number not in taken)
    return dict(zip(used[used > _LOW24].tolist(), free, strict=False))
