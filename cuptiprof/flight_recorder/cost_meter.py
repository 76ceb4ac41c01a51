"""What the recorder costs the program, as far as that can be measured from within."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cuptiprof import _core


class CostMeter:
    """CPU time since it was made. Used on the recorder's thread alone; its numbers may be read anywhere.

    Args:
        launch_ns: what a launch costs, ns; None: our part of it, tried out now.

    Attributes:
        launch_ns: that. launches_s, decoder_s, recorder_s: CPU time in launches, of the decoder's thread, and of the recorder's thread, s.
        pct: all of it, percent of the time by the clock.
    """

    def __init__(self, launch_ns: float | None) -> None:
        self.launch_ns = _core.launch_event_ns() if launch_ns is None else float(launch_ns)
        self.launches_s = self.decoder_s = self.recorder_s = self.pct = 0.0
        self._since = time.perf_counter()
        self._left_out = 0  # ns

    def look(self, now: float, launches: int, decoder_ns: int) -> float:
        """CPU time so far, s. `now`: ``time.perf_counter()``."""
        self.launches_s = launches * self.launch_ns / 1e9
        self.decoder_s = decoder_ns / 1e9
        self.recorder_s = (time.thread_time_ns() - self._left_out) / 1e9
        spent = self.launches_s + self.decoder_s + self.recorder_s
        self.pct = 100 * spent / max(now - self._since, 1e-9)
        return spent

    @contextmanager
    def leaving_out(self) -> Iterator[None]:
        """What this thread does inside does not count."""
        began = time.thread_time_ns()
        try:
            yield
        finally:
            self._left_out += time.thread_time_ns() - began
