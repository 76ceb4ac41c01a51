"""What a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from cuptiprof import _core

ALIKE = 0.6  # share of letters in common from which a word may be a slip of another


def nearest(word: str, known: Iterable[str], k: int = 3, *, alike: float = 0.0) -> list[str]:
    """The ``k`` known words nearest to `word`, which may be a glob or "regex:..."; mangled names count by their function's.

    Args:
        alike: leave out words that have less than this share of letters in common with it, 0..1.
    """
    found = _core.nearest_names(word[:200], known, k)
    return [f for f in found if difflib.SequenceMatcher(None, word.lower(), f.lower()).ratio() >= alike]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)`` with the known word most like `word`; empty if none is."""
    found = nearest(word, known, 1, alike=ALIKE)
    return f" (did you mean {found[0]}?)" if found else ""
