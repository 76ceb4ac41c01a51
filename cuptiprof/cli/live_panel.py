"""What ``run --live`` shows while the program runs: lines at the bottom of its terminal, or of its log.

On a terminal the lines at the bottom are taken out of what scrolls (DECSTBM, as apt does for its progress bar), so that whatever the
program writes, from Python, C or a child process, goes on above them. Nothing of the program's is caught or redirected.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Protocol

from cuptiprof.cli.live_layout import live_lines, one_line
from cuptiprof.cli.standard_streams import usable
from cuptiprof.watch.live_figures import LiveFigures

_MOST_LINES = 18
_PROGRAM_LINES = 6
"""Lines that the program has at least; a terminal that has no three more shows nothing."""
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_ERASE_LINE, _BOLD, _PLAIN = "\x1b[2K", "\x1b[1m", "\x1b[0m"


class LiveDisplay(Protocol):
    """Something that shows numbers until it is closed."""

    def show(self, figures: LiveFigures) -> None:
        """The newest."""

    def close(self) -> None:
        """No more; may be called twice."""


def live_display() -> LiveDisplay | None:
    """On standard error as it is now; None: there is none."""
    if not usable(sys.stderr):
        return None
    try:
        own = os.dup(sys.stderr.fileno())  # the program may close its own
    except (OSError, ValueError, AttributeError):
        return None
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return BottomPanel(own, encoding) if os.isatty(own) else LogLines(own, encoding)


class LogLines:
    """A line a second, for what is no terminal."""

    def __init__(self, fd: int, encoding: str) -> None:
        self._fd = fd
        self._encoding = encoding

    def show(self, figures: LiveFigures) -> None:
        _write(self._fd, f"cuptiprof: {one_line(figures)}\n", self._encoding)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class BottomPanel:
    """The lowest lines of a terminal."""

    def __init__(self, fd: int, encoding: str) -> None:
        self._fd = fd
        self._encoding = encoding
        self._pid = os.getpid()
        self._size = (0, 0)  # columns and lines of the terminal for which there is a panel
        self._height = 0

    def show(self, figures: LiveFigures) -> None:
        if self._fd < 0 or not self._is_in_front():
            return
        columns, lines = self._terminal()
        height = min(_MOST_LINES, lines // 2, lines - _PROGRAM_LINES)
        if height < 3:
            return
        begin = ""
        if (columns, lines) != self._size:
            begin = self._take(columns, lines, height)
        shown = live_lines(figures, columns - 1, height)
        top = lines - height
        text = "".join(
            f"\x1b[{top + i + 1};1H{_ERASE_LINE}"
            + (f"{_BOLD}{shown[i].text}{_PLAIN}" if shown[i].is_heading else shown[i].text)
            if i < len(shown)
            else f"\x1b[{top + i + 1};1H{_ERASE_LINE}"
            for i in range(height)
        )
        _write(self._fd, f"{begin}{_SAVE}{_PLAIN}{text}{_RESTORE}", self._encoding)

    def close(self) -> None:
        """The whole terminal is the program's again."""
        if self._fd < 0:
            return
        if self._height and self._pid == os.getpid():
            _, lines = self._terminal()
            top = lines - self._height
            _write(self._fd, f"{_SAVE}\x1b[r\x1b[{max(top, 0) + 1};1H\x1b[J{_RESTORE}", self._encoding)
        os.close(self._fd)
        self._fd = -1

    def _take(self, columns: int, lines: int, height: int) -> str:
        """The lowest lines, from now on. What stands there goes up first."""
        room = height if not self._height else max(height - self._height, 0)
        self._size, self._height = (columns, lines), height
        up = f"\x1b[{room}A" if room else ""
        return "\n" * room + f"{up}{_SAVE}\x1b[1;{lines - height}r{_RESTORE}"

    def _terminal(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 0
        return size.columns or 80, size.lines

    def _is_in_front(self) -> bool:
        """A job in the background leaves the terminal alone."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True


def _write(fd: int, text: str, encoding: str) -> None:
    """In one piece, so that nothing of the program's comes between."""
    with suppress(OSError):  # gone with its terminal, or its reader: the program goes on
        os.write(fd, text.encode(encoding, "backslashreplace"))
