"""The events of the trace as rows of columns, of which the native writer (csrc/trace/event_text) makes JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from cuptiprof import _core
from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Array

Mask = npt.NDArray[np.bool_]

_AT_ONCE = 1 << 14  # events: some MB of text


class Events:
    """Events of one kind: a template, a row each, of pieces in the order in which they are added.

    Every piece is text that all rows have alike, then the row's value. Rows where ``shown`` is false have neither.

    Args:
        count: how many events.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._text = _core.EventText()

    def same(self, text: str, shown: Mask | None = None) -> Events:
        """Text without a value."""
        self._text.add(text.encode(), shown=shown)
        return self

    def number(self, before: str, values: Array, shown: Mask | None = None) -> Events:
        """Integers, or float64 in the shortest form that reads back the same (null: not finite)."""
        self._text.add(before.encode(), values, shown=shown)
        return self

    def time(self, before: str, ns: Array, shown: Mask | None = None) -> Events:
        """Integer ns as microseconds with three decimals, exactly.

        A fourth decimal, 1, stands where a float64 of three would lose a nanosecond to readers that cut. Without it slices that
        end together would not nest any more.
        """
        self._text.add(before.encode(), np.asarray(ns, np.int64), "microseconds", shown)
        return self

    def text(self, before: str, codes: Array, texts: Iterable[str], shown: Mask | None = None) -> Events:
        """One of a few texts, which are JSON already; nothing for a code that none has."""
        # Names are escaped to ASCII; a lone surrogate in a path is all that could not be encoded.
        encoded = [text.encode("utf-8", "backslashreplace") for text in texts]
        self._text.add(before.encode(), codes, "text", shown, encoded)
        return self

    def name(self, before: str, codes: Array, strings: Sequence[str], shown: Mask | None = None) -> Events:
        """A column of string indices as JSON strings; each distinct one is escaped once."""
        used, which = renumbered(codes)
        return self.text(before, which, quoted(strings[code] for code in used.tolist()), shown)

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """How many events there are in each piece of the text, and the piece."""
        for first in range(0, self.count, _AT_ONCE):
            end = min(first + _AT_ONCE, self.count)
            yield end - first, self._text.rows(first, end)


def microseconds(ns: Array) -> list[str]:
    """As :meth:`Events.time` writes them."""
    ns = np.asarray(ns, np.int64)
    texts = b"".join(text for _, text in Events(len(ns)).time("\n", ns).pieces())
    return texts.decode().split("\n")[1:]


def quoted(texts: Iterable[str]) -> list[str]:
    """JSON strings, ASCII only."""
    return [json.dumps(text) for text in texts]
