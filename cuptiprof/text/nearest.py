"""What a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)`` with the known word most like `word`; empty if none is."""
    found = difflib.get_close_matches(word, list(known), 1)
    return f" (did you mean {found[0]}?)" if found else ""
