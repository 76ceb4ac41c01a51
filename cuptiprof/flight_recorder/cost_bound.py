"""Keeps what the recorder costs below a bound: collects in windows where collecting all the time would cost more."""

from __future__ import annotations

_WINDOW = 1.0  # s that a window lasts, at least about
_SAVED = 10.0  # s of the bound that may be saved for a burst


class CostBound:
    """Whether to collect now, of what collecting has cost so far. A bucket of tokens: the bound fills it, cost empties it.

    Empty, the window closes; it opens again when there is enough for one of about a second at what the last one cost. So over any time T the
    cost is below the bound times T + 10 s, plus what a look comes too late.

    Args:
        bound: s of CPU time per s by the clock, more than 0.
        now: s, of any clock.

    Attributes:
        is_open: whether to collect.
        spent: s of CPU time so far. since: `now` of the beginning; until: of the last look.
    """

    def __init__(self, bound: float, now: float) -> None:
        self._bound = bound
        self._balance = bound * _SAVED
        self._open_for, self._open_cost = 0.0, 0.0
        self._rate = 0.0  # of the last window: s of CPU time a s
        self.is_open = True
        self.since = self.until = now
        self.spent = 0.0

    def look(self, now: float, spent: float, *, collecting: bool = True) -> bool:
        """A moment later: what the window should be from now on.

        Args:
            now: s, not before the last one.
            spent: s of CPU time since the beginning.
            collecting: whether collection was on since the last look where the window was open (the program may have paused it).
        """
        took, cost = max(now - self.until, 0.0), max(spent - self.spent, 0.0)
        self.until, self.spent = now, max(spent, self.spent)
        self._balance += self._bound * took - cost
        if self.is_open and collecting:
            self._open_for += took
            self._open_cost += cost
            if self._open_for > 0:
                self._rate = self._open_cost / self._open_for
        enough = _WINDOW * self._rate
        self._balance = min(self._balance, max(self._bound * _SAVED, enough))
        if self.is_open:
            self.is_open = self._balance >= 0
        elif self._balance >= enough:
            self.is_open = True
            self._open_for, self._open_cost = 0.0, 0.0
        return self.is_open

    @property
    def pct(self) -> float:
        """CPU time per time by the clock so far, percent of one CPU."""
        return 100 * self.spent / max(self.until - self.since, 1e-9)
