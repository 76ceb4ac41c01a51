"""Slices as columns, with their names, arguments and arrows as numbers: what the native writer (csrc/trace/perfetto_slices) takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cuptiprof import _core
from cuptiprof.data.codes import Int64, renumbered
from cuptiprof.data.tables import Array
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.json_text import Mask
from cuptiprof.export.perfetto.track_tree import TrackTree

Extra = tuple[str, int, Array, "Mask | None"]

_PIECE = 4 << 20
COMMON_ARROWS = 1 << 62
"""numbers of arrows between ranks begin here; below are those of each"""


class _Texts:
    """Texts by number, from 1."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers) + 1)


class NamedSlices:
    """The slices of a trace, kind by kind."""

    def __init__(self, tracks: TrackTree, clock: Clock, first_arrow: int = 0) -> None:
        self._tracks, self._clock, self._first_arrow = tracks, clock, first_arrow
        self._slices = _core.PerfettoSlices(tracks.numbers)
        self._categories, self._names, self._arguments, self._values = (_Texts() for _ in range(4))
        self.count = 0

    def add(
        self,
        category: str,
        place: tuple[Array, Array],
        times: tuple[Array, Array],
        names: Array,
        extras: Iterable[Extra],
    ) -> None:
        """Slices of one category.

        Args:
            place: pid and tid of each, as the layout has them.
            times: start and end, ns of the run clock.
            names: from :meth:`names`.
            extras: from :meth:`argument`, :meth:`text` and :meth:`arrow`.
        """
        start, end = (self._clock.since(t) for t in times)
        track = self._tracks.index(*place)
        self._slices.add(self._categories.number(category), start, end, track, names, list(extras))
        self.count += len(start)

    def names(self, codes: Array, texts: Sequence[str]) -> Int64:
        """Numbers of the names of slices."""
        return _numbered(self._names, codes, texts)

    def argument(self, name: str, values: Array, shown: Mask | None = None) -> Extra:
        """A number."""
        return "number", self._arguments.number(name), values, shown

    def text(self, name: str, codes: Array, texts: Sequence[str]) -> Extra:
        """A text, where it is not empty."""
        numbers = _numbered(self._values, codes, texts)
        return "text", self._arguments.number(name), numbers, numbers != self._values.number("")

    def arrow(self, key: Array, shown: Mask, is_last: bool = False) -> Extra:
        """The slice begins or goes on with the arrow of this number, or is its end."""
        return "last flow" if is_last else "flow", 0, np.asarray(key, np.int64) + self._first_arrow, shown

    def common_arrow(self, key: Array, shown: Mask) -> Extra:
        """The slice goes on with an arrow that leads through several ranks."""
        return "flow", 0, np.asarray(key, np.int64) + COMMON_ARROWS, shown

    def tables(self) -> Iterator[tuple[int, Iterable[str]]]:
        """Texts by field of ``InternedData``."""
        for field, texts in ((1, self._categories), (2, self._names), (3, self._arguments), (29, self._values)):
            yield field, texts.numbers

    def packets(self) -> Iterator[bytes]:
        """All slices."""
        while data := self._slices.next(_PIECE):
            yield data


def _numbered(numbers: _Texts, codes: Array, texts: Sequence[str]) -> Int64:
    used, which = renumbered(codes)
    return np.array([numbers.number(texts[code]) for code in used.tolist()], np.int64)[which]
