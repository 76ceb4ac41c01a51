"""Lines of source files, as they are now."""

from __future__ import annotations

import inspect
import linecache
import os
import stat
import tokenize

_LARGEST = 16 << 20
"""bytes of a file that is read; the names come from wherever a run does"""


class SourceCode:
    """Source by file and line; files are read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str | None:
        """The line without its end; None: the file is not here, or has no such line."""
        lines = self._lines(file)
        return lines[number - 1].rstrip() if 0 < number <= len(lines) else None

    def last_line(self, file: str, first: int) -> int:
        """Last line of the function that begins at `first`; `first` itself where there is no source."""
        lines = self._lines(file)
        if not 0 < first <= len(lines):
            return first
        try:
            return first + max(len(inspect.getblock(lines[first - 1 :])), 1) - 1
        except (SyntaxError, tokenize.TokenError, IndentationError):
            return first

    def _lines(self, file: str) -> list[str]:
        if file not in self._files:
            self._files[file] = _read(file)
        return self._files[file]


def _read(file: str) -> list[str]:
    known = linecache.cache.get(file)  # of notebooks, say, whose cells are no files
    if known is not None and len(known) == 4:
        return list(known[2])
    try:
        found = os.stat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return []
        with tokenize.open(file) as f:
            return f.readlines()
    except (OSError, ValueError, SyntaxError):
        return []
