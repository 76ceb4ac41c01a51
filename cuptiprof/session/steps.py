"""The training steps of a session: what ``profile.step()`` marks, within the session's budget."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_SHARE = 64
"""The part of the budget that steps may take: one in so many."""
_FEWEST = 1024
"""Steps that are kept whatever the budget."""
_DROPPED_AT_ONCE = 8
"""An eighth of the steps goes when they are full: moving the rest each time would cost more than a step."""


class Step(NamedTuple):
    """A training step: number, start and end (ns, run clock), thread that ended it."""

    number: int
    start: int
    end: int
    thread: int


_FIELDS = len(Step._fields)  # int64 each


class Steps:
    """A list of steps that drops the oldest ones (or, to keep the first, the new ones) when it is full.

    Args:
        budget: of the session, bytes.

    Attributes:
        lost: how many were dropped.
    """

    def __init__(self, budget: int, *, keep_first: bool) -> None:
        self._values = array("q")
        self._limit = max(budget // _SHARE // (_FIELDS * self._values.itemsize), _FEWEST)
        self._keep_first = keep_first
        self.lost = 0

    def __len__(self) -> int:
        return len(self._values) // _FIELDS

    def __iter__(self) -> Iterator[Step]:
        values = self._values
        return (Step(*values[i : i + _FIELDS]) for i in range(0, len(values), _FIELDS))

    def numbers_at(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Number + 1 of the step that each time (ns, run clock) is in; 0: of none."""
        values = np.array(self._values, np.int64).reshape(-1, _FIELDS)
        if not len(values):
            return np.zeros(len(times), np.uint32)
        number, start, end = values.T[:3]
        at = np.searchsorted(start, times, side="right") - 1
        within = (at >= 0) & (times < end[at])
        return np.where(within, number[at] + 1, 0).astype(np.uint32)

    def append(self, step: Step) -> None:
        """Add one."""
        if len(self) >= self._limit:
            dropped = 1 if self._keep_first else self._limit // _DROPPED_AT_ONCE
            self.lost += dropped
            if self._keep_first:
                return
            del self._values[: _FIELDS * dropped]
        self._values.extend(step)

    def extend(self, steps: Iterable[Step]) -> None:
        """Add several."""
        for step in steps:
            self.append(step)

    def plus(self, steps: Iterable[Step]) -> Steps:
        """These and several more; these stay as they are."""
        both = Steps(0, keep_first=self._keep_first)
        both._limit, both.lost, both._values = self._limit, self.lost, self._values[:]
        both.extend(steps)
        return both
