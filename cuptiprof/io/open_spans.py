"""Which of a thread's nested spans is open at a time: how the regions of a trace find what lies in them."""

from __future__ import annotations

from typing import NamedTuple


class Placed(NamedTuple):
    """One region instance in its place in the tree."""

    start: int
    end: int
    path: str
    code: int
    instance: int
    depth: int


Spans = list[Placed]


class Innermost:
    """The innermost of properly nested spans (by start) that is open at rising times."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._next = 0
        self._stack: Spans = []

    def at(self, t: int) -> Placed | None:
        while self._next < len(self._spans) and self._spans[self._next].start <= t:
            self._stack.append(self._spans[self._next])
            self._next += 1
            # What ended before the new one began is not under it.
            while len(self._stack) > 1 and self._stack[-2].end <= self._stack[-1].start:
                del self._stack[-2]
        while self._stack and self._stack[-1].end <= t:
            self._stack.pop()
        return self._stack[-1] if self._stack else None


class Inherited:
    """The innermost open span of the only thread that has one open, at rising times."""

    def __init__(self, threads: list[Spans]) -> None:
        self._threads = [Innermost(s) for s in threads]

    def at(self, t: int) -> Placed | None:
        opened = [s for s in (thread.at(t) for thread in self._threads) if s is not None]
        return opened[0] if len(opened) == 1 else None


def spans_at(placed: dict[int, Spans], workers: set[int], thread: int, times: list[int]) -> list[Placed | None]:
    """The innermost span open at rising times of a thread; on those of `workers`, which work for others, that of the only
    other thread that has one open."""
    own = Innermost(placed.get(thread, []))
    if thread not in workers:
        return [own.at(t) for t in times]
    others = Inherited([spans for t, spans in placed.items() if t not in workers])
    return [own.at(t) or others.at(t) for t in times]
