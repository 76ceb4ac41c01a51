"""Which step runs, live: one line on a terminal while a schedule does its work."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from cuptiprof.session.schedule import Action
from cuptiprof.text.units import format_time

_EVERY = 0.1
"""Seconds between two writings: what is between is not worth a system call."""
_DOING = {
    Action.NONE: "waiting",
    Action.WARMUP: "warming up",
    Action.RECORD: "recording",
    Action.RECORD_AND_SAVE: "recording, last of its cycle",
}
_ERASE = "\r\x1b[2K"


class StepLine:
    """The line, on standard error. It is erased before anything else is said; what the program prints comes after it."""

    def __init__(self, wanted: bool | None) -> None:
        """`wanted`: None: where standard error is a terminal."""
        stream: Any = sys.stderr
        there = stream is not None and not getattr(stream, "closed", True)
        self._stream: Any = stream if there and (wanted or (wanted is None and stream.isatty())) else None
        self._next = 0.0
        self._is_shown = False

    def show(self, step: int, action: Action, last_ns: int, cycles: int) -> None:
        """Step `step` begins; the one before took `last_ns`, and so many cycles are finished."""
        if self._stream is None or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY
        text = f"cuptiprof: step {step}, {_DOING[action]}; the last took {format_time(last_ns)}"
        if cycles:
            text += f"; {cycles} cycle{'s' * (cycles > 1)} finished"
        self._write(f"{_ERASE}{text[: self._room()]}  ")
        self._is_shown = True

    def erase(self) -> None:
        """Leave the line to others."""
        if self._is_shown:
            self._is_shown = False
            self._write(_ERASE)

    def _room(self) -> int:
        """Characters that fit into a line, with two blanks and the cursor behind them."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max((columns or 80) - 3, 20)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed, or gone with its terminal: the program's steps go on
            self._stream = None
