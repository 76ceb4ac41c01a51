"""Allocations from the records of their calls: how long each lived, who held memory when most was in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.data.tables import Array, Table

Int64 = npt.NDArray[np.int64]
STAYED = np.iinfo(np.int64).max
"""``Allocations.end`` of memory that was not released."""
_ALLOCATION, _RELEASE = 1, 2  # CUpti_ActivityMemoryOperationType


@dataclass(frozen=True)
class Allocations:
    """One value an allocation, in order of time.

    Attributes:
        start, end: ns, run clock; `end` is STAYED for memory that was not released.
        size: bytes.
        device: ordinal.
        kind: CUpti_ActivityMemoryKind.
        region: string index of the path.
        unseen_releases: releases of memory that had been allocated before the session.
    """

    start: Int64
    end: Int64
    size: Int64
    device: Array
    kind: Array
    region: Array
    unseen_releases: int

    def __len__(self) -> int:
        return len(self.start)

    def where(self, rows: Array) -> Allocations:
        """Some of them: a mask or row numbers."""
        return Allocations(
            self.start[rows],
            self.end[rows],
            self.size[rows],
            self.device[rows],
            self.kind[rows],
            self.region[rows],
            self.unseen_releases,
        )

    def pools(self) -> Iterator[tuple[int, int, Allocations]]:
        """(device, kind, those): what one limit of memory holds for."""
        for device, kind in sorted(set(zip(self.device.tolist(), self.kind.tolist(), strict=True))):
            yield device, kind, self.where((self.device == device) & (self.kind == kind))

    def held_at(self, time: int) -> Array:
        """Mask of those that were allocated by `time` and released later."""
        return (self.start <= time) & (self.end > time)

    def levels(self) -> tuple[Int64, Int64]:
        """What was in use together: times at which that changed (ns, ascending), and bytes from each on."""
        ended = np.flatnonzero(self.end != STAYED)
        time = np.concatenate([self.start, self.end[ended]])
        change = np.concatenate([self.size, -self.size[ended]])
        order = np.lexsort((change, time))  # at one moment what is released makes room first
        return time[order], np.cumsum(change[order])

    def peak(self) -> tuple[int, int]:
        """When most was in use together, first (ns), and how much (bytes); (0, 0) of none."""
        if not len(self):
            return 0, 0
        time, level = self.levels()
        at = int(np.argmax(level))
        return int(time[at]), int(level[at])


def allocations(memory: Table) -> Allocations:
    """The allocations in the table ``memory``.

    An address is one allocation's until it is released. Where the same address is allocated again and no release was seen (its
    record was lost), the first one ends there.
    """
    time, address = memory["timestamp"], memory["address"]
    operation = memory["operation"]
    order = np.lexsort((np.arange(len(memory)), time, address))
    is_allocation = operation[order] == _ALLOCATION
    same_next = np.r_[address[order][1:] == address[order][:-1], False] if len(order) else np.zeros(0, bool)
    follows = np.r_[order[1:], order[:1]]
    end = np.where(same_next, time[follows], STAYED)[is_allocation]
    rows = order[is_allocation]
    had_one_before = np.r_[False, same_next[:-1] & is_allocation[:-1]] if len(order) else np.zeros(0, bool)
    unseen = int(np.count_nonzero((operation[order] == _RELEASE) & ~had_one_before))
    by_time = np.argsort(time[rows], kind="stable")
    rows, end = rows[by_time], end[by_time]
    return Allocations(
        time[rows],
        end,
        memory["bytes"][rows].astype(np.int64),
        memory["device"][rows],
        memory["memory_kind"][rows],
        memory.codes("region")[rows],
        unseen,
    )
