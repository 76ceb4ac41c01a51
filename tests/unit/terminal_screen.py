"""A terminal as far as programs here use one: what stands on its screen after what was written to it."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b(?:([78])|\[(\??)([\d;]*)([A-Za-z]))")


class TerminalScreen:
    """Lines of text, a cursor, a part that scrolls (DECSTBM) and a saved cursor (DECSC)."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.lines = [" " * columns for _ in range(rows)]
        self._row = self._column = 0
        self._top, self._bottom = 0, rows - 1
        self._saved = (0, 0)

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = _SEQUENCE.match(text, at)
            if found:
                self._sequence(*found.groups())
                at = found.end()
                continue
            self._character(text[at])
            at += 1

    def _character(self, c: str) -> None:
        if c == "\r":
            self._column = 0
        elif c == "\n":
            if self._row == self._bottom:
                self.lines[self._top : self._bottom + 1] = [
                    *self.lines[self._top + 1 : self._bottom + 1],
                    " " * self.columns,
                ]
            elif self._row < self.rows - 1:
                self._row += 1
        else:
            assert c.isprintable(), f"{c!r} went to the terminal"
            line = self.lines[self._row]
            self.lines[self._row] = line[: self._column] + c + line[self._column + 1 :]
            self._column = min(self._column + 1, self.columns - 1)

    def _sequence(self, save: str | None, private: str, numbers: str, code: str) -> None:
        n = [int(part or 0) for part in numbers.split(";")] if numbers else []
        if save == "7":
            self._saved = self._row, self._column
        elif save == "8":
            self._row, self._column = self._saved
        elif code == "H":
            self._row, self._column = (n[0] if n else 1) - 1, (n[1] if len(n) > 1 else 1) - 1
        elif code == "A":
            self._row = max(self._row - (n[0] if n else 1), 0)
        elif code == "r":
            self._top, self._bottom = (n[0] - 1, n[1] - 1) if n else (0, self.rows - 1)
            self._row = self._column = 0
        elif code == "K":
            assert n == [2]
            self.lines[self._row] = " " * self.columns
        elif code == "J":
            assert not n or n == [0]
            self.lines[self._row] = self.lines[self._row][: self._column].ljust(self.columns)
            for i in range(self._row + 1, self.rows):
                self.lines[i] = " " * self.columns
        else:
            assert code == "m" or private, f"unknown sequence {code!r}"

    @property
    def text(self) -> list[str]:
        return [line.rstrip() for line in self.lines]

    @property
    def scrolls(self) -> tuple[int, int]:
        """First and last line of the part that scrolls."""
        return self._top, self._bottom
