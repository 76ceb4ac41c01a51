"""The training steps of a session: what ``profile.step()`` marks, within the session's budget."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BYTES = 4 * 8
_SHARE = 64
"""of the budget: so many-th part of it"""


class Step(NamedTuple):
    """A training step: number, start and end (ns, run clock), thread that ended it."""

    number: int
    start: int
    end: int
    thread: int


class Steps:
    """A list of steps that drops the oldest ones (or, to keep the first, the new ones) when it is full.

    Attributes:
        lost: how many were dropped.
    """

    def __init__(self, budget: int, keep_first: bool) -> None:
        self._values = array("q")
        self._limit = max(budget // _SHARE // _BYTES, 1024)
        self._keep_first = keep_first
        self.lost = 0

    def __len__(self) -> int:
        return len(self._values) // 4

    def __iter__(self) -> Iterator[Step]:
        values = self._values
        return (Step(*values[i : i + 4]) for i in range(0, len(values), 4))

    def append(self, step: Step) -> None:
        """Add one."""
        if len(self) >= self._limit:
            dropped = 1 if self._keep_first else self._limit // 8
            self.lost += dropped
            if self._keep_first:
                return
            del self._values[: 4 * dropped]
        self._values.extend(step)

    def extend(self, steps: Iterable[Step]) -> None:
        """Add several."""
        for step in steps:
            self.append(step)

    def plus(self, steps: Iterable[Step]) -> Steps:
        """These and several more; these stay as they are."""
        both = Steps(0, self._keep_first)
        both._limit, both.lost, both._values = self._limit, self.lost, self._values[:]
        both.extend(steps)
        return both
