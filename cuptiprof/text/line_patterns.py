"""Which lines of a program are meant: "train.py", "train.py:42", "Model.forward"."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase


class LinePattern:
    """One pattern: a file, a file and a line of it, or a function. ``*``, ``?`` and ``[...]`` are those of file names.

    A file is named by its path or the end of it ("model.py", "pkg/model.py"), a function by its qualified name or the end
    of it ("forward", "Model.forward").
    """

    def __init__(self, text: str) -> None:
        self.text = text
        found = re.fullmatch(r"(.+):(\d+)", text)
        self._name = found[1] if found else text
        self._line = int(found[2]) if found else None

    def matches(self, file: str, function: str, line: int | None = None) -> bool:
        """Whether the line is meant; without `line`, whether any line of the function may be."""
        if self._line is not None:
            return line in (None, self._line) and _ends_with(file, "/", self._name)
        return _ends_with(file, "/", self._name) or _ends_with(function, ".", self._name)


def _ends_with(whole: str, separator: str, end: str) -> bool:
    return fnmatchcase(whole, end) or fnmatchcase(whole, f"*{separator}{end}")
