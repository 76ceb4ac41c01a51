"""What a backend of torch.distributed records of its collectives (``record_param_comms``), whoever called it: C++, too.

NCCL's backend and its likes do; gloo does not. Operators must be observed: the records are beside theirs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cuptiprof import _core
from cuptiprof.data.element_types import element_size, type_name

_NOT_ONE = ("wait", "init", "coalesced", "")
"""What has a record and does not communicate: waits, and what brackets several."""
_MOST_RANKS = 1 << 20


class CollectiveRecord(NamedTuple):
    """One: times in ns on the run clock, `rank` the other one, the root, or this one, `sequence` -1 where torch does not say it."""

    start: int
    end: int
    thread: int
    name: str
    group: str
    group_description: str
    element_type: str
    in_elements: int
    out_elements: int
    rank: int
    group_size: int
    first_rank: int
    rank_stride: int
    sequence: int
    is_async: bool

    @property
    def dtype(self) -> str:
        """As torch shows it."""
        return type_name(self.element_type)

    @property
    def in_bytes(self) -> int:
        """What this rank gives."""
        return max(self.in_elements, 0) * element_size(self.element_type)

    @property
    def out_bytes(self) -> int:
        """What this rank gets."""
        return max(self.out_elements, 0) * element_size(self.element_type)

    @property
    def ranks(self) -> list[int]:
        """Global ranks of the group; empty: not known here, as where they are not evenly spaced."""
        if self.first_rank < 0 or self.rank_stride < (self.group_size > 1) or not 0 < self.group_size <= _MOST_RANKS:
            return []
        return [self.first_rank + i * self.rank_stride for i in range(self.group_size)]


def taken_records() -> tuple[list[CollectiveRecord], int]:
    """Those of collectives that ended since the last time, by start, and how many more there was no room for."""
    taken, lost = _core.take_collectives()
    records = [CollectiveRecord(*values) for values in sorted(taken)]
    return [record for record in records if record.name not in _NOT_ONE], lost


def outside_of(
    records: Sequence[CollectiveRecord], calls: Sequence[tuple[int, int, int]], begun: Mapping[int, int]
) -> list[CollectiveRecord]:
    """Those that no followed call has made.

    Args:
        calls: (thread, start, end) of each; those of a thread do not overlap.
        begun: thread -> start of a call that goes on.
    """
    of_thread: dict[int, list[tuple[int, int]]] = {}
    for thread, start, end in sorted(calls):
        of_thread.setdefault(thread, []).append((start, end))

    def is_inside(record: CollectiveRecord) -> bool:
        if record.start >= begun.get(record.thread, record.start + 1):
            return True
        mine = of_thread.get(record.thread, [])
        last = bisect_right(mine, (record.start, record.end)) - 1
        return last >= 0 and record.start <= mine[last][1]

    return [record for record in records if not is_inside(record)]
