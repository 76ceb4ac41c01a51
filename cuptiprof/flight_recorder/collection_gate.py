"""Whether the recorder's session collects: only while both the program and the bound on the cost let it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuptiprof.session.profile import profile


class Gate:
    """Two may close it; it is open when none has. Neither waits for the GPU where the cost closes it: the recorder's thread must not hang with it."""

    def __init__(self, session: profile) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._of_program = 0
        self._of_cost = False
        self._closed = False
        self._open_since = time.perf_counter()  # s

    def set_open(self, is_open: bool) -> None:
        """By the cost.

        Raises:
            SessionError: the session ended.
        """
        with self._lock:
            self._of_cost = not is_open
            self._apply(wait=False)

    @contextmanager
    def closed_by_program(self) -> Iterator[None]:
        """Closed inside; may be nested.

        Raises:
            SessionError: the session does not run.
        """
        with self._lock:
            self._of_program += 1
            try:
                self._apply(wait=True)
            except BaseException:
                self._of_program -= 1
                raise
        try:
            yield
        finally:
            with self._lock:
                self._of_program -= 1
                self._apply(wait=False)

    def was_open_since(self, moment: float) -> bool:
        """All the time since then (``time.perf_counter()``)."""
        with self._lock:
            return not self._closed and self._open_since <= moment

    def _apply(self, *, wait: bool) -> None:
        close = self._of_cost or self._of_program > 0
        if close == self._closed:
            return
        if close:
            self._session.pause(wait=wait)
        else:
            self._session.resume()
            self._open_since = time.perf_counter()
        self._closed = close
