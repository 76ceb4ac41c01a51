"""Reading results that anybody may have written, and writing their text where it can do nothing but be read.

Values are taken by type and size; whatever is not as it should be is as if it were not there.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE_BYTES = 16_000_000
MOST_FILES = 2000
MOST_ITEMS = 20_000

# Unseen, direction-changing and line-breaking characters; unassigned and private ones; halves of surrogates.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ESCAPED = {c: f"\\{c}" for c in "\\`*_[]|~$"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def markdown(text: str, limit: int = 200) -> str:
    """`text` on one line of a table cell: no markup, link, mention, HTML or control character of its own; at most `limit` characters."""
    plain = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in text[: 4 * limit])
    words = " ".join(plain.split())
    if len(words) > limit:
        words = words[: limit - 1].rstrip() + "…"
    # GitHub makes links of bare addresses too.
    return "".join(_ESCAPED.get(c, c) for c in words).replace("://", "&#58;//").replace("www.", "www&#46;")


def text_of(value: Any) -> str:
    """A text; "" for anything else."""
    return value if isinstance(value, str) else ""


def number_of(value: Any) -> float:
    """A finite number; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def dict_of(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a JSON array, at most MOST_ITEMS; none for anything else."""
    for item in value[:MOST_ITEMS] if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def compact(value: Any, limit: int = 600) -> str:
    """Any JSON value as text of one line without quotes; at most about `limit` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "?"
    return text.replace('"', "")[:limit]


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def read_results(folder: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """(path under `folder`, its JSON object or why it cannot be read), in order of names.

    Files over FILE_BYTES, links, and what is no object are not read.
    """
    for path in sorted(folder.rglob("*.json"))[:MOST_FILES]:
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            yield name, "not a plain file"
            continue
        try:
            with path.open("rb") as f:
                raw = f.read(FILE_BYTES + 1)
            if len(raw) > FILE_BYTES:
                yield name, f"larger than {FILE_BYTES} bytes"
                continue
            data = json.loads(raw, parse_constant=_no_constant)
        except (OSError, ValueError, RecursionError) as e:
            yield name, f"unreadable: {type(e).__name__}"
            continue
        yield name, data if isinstance(data, dict) else "not a JSON object"
