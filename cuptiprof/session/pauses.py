"""When a session did not collect, so that what nobody saw is not taken for idle time."""

from __future__ import annotations

from collections import deque

from cuptiprof import _core
from cuptiprof.data.coverage import KEY

_MOST = 10_000  # that are remembered, the latest


class Pauses:
    """Of a session: each from ``begin()`` to ``end()``."""

    def __init__(self) -> None:
        self._spans: deque[tuple[int, int | None]] = deque(maxlen=_MOST)  # start, end (None: it lasts), ns

    def begin(self) -> None:
        """Nothing is collected from now on."""
        self._spans.append((_core.now_ns(), None))

    def end(self) -> None:
        """Collection goes on; may be called where nothing was paused."""
        if self._spans and self._spans[-1][1] is None:
            self._spans[-1] = (self._spans[-1][0], _core.now_ns())

    def next_cycle(self) -> None:
        """Those that are over belong to the last one."""
        self._spans = deque((span for span in self._spans if span[1] is None), _MOST)

    def metadata(self, until: int) -> dict[str, list[list[int]]]:
        """For a run that ends at `until`, ns."""
        spans = [(start, until if end is None else end) for start, end in self._spans]
        return {KEY: [[start, end] for start, end in spans if start < end]} if spans else {}
