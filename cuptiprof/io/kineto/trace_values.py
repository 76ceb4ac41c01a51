"""Values of a trace's JSON as numbers, times and texts. A file may hold anything where a number belongs."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

_HIGHEST = (1 << 63) - 1
_DECODER = json.JSONDecoder(parse_float=str, parse_constant=str, strict=False)
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d{0,300})(?:\.\d+)?")  # what json would take longer for


def to_ns(value: Any) -> int:
    """Microseconds (int or decimal text) as integer ns, exactly; digits beyond the third decimal are cut.

    Raises:
        ValueError, OverflowError: it is no number.
    """
    if isinstance(value, int):
        return value * 1000
    text = str(value)
    if "e" in text or "E" in text:
        return round(float(text) * 1000)
    whole, _, fraction = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 1000 + sign * int((fraction + "000")[:3])


def number(value: Any) -> int:
    """A whole number out of a JSON value; 0 for anything else."""
    try:
        return int(float(value)) if isinstance(value, str) else int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def clamped(value: int) -> int:
    """What int64 has nearest to it: where a column's limits are checked, that is outside as well."""
    return min(max(value, -_HIGHEST), _HIGHEST)


def without_surrogates(text: str) -> str:
    """Half a surrogate pair, which no UTF-8 has, written out (\\ud800)."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_value(token: str | bytes) -> Any:
    """A value of the native reader: text is a string of the file, bytes are JSON, decimals of which stay text. None: it is no JSON."""
    if isinstance(token, str):
        return token
    if _NUMBER.fullmatch(token):
        return token.decode() if b"." in token else int(token)
    try:
        value = _DECODER.decode(token.decode("utf-8", "backslashreplace"))
    except (ValueError, RecursionError):
        return None
    return without_surrogates(value) if isinstance(value, str) else value


def is_within(values: Int64, bits: int) -> npt.NDArray[np.bool_]:
    """Which are not negative and have at most so many bits."""
    out: npt.NDArray[np.bool_] = values >= 0
    if bits < 63:
        out &= values < 1 << bits
    else:
        out &= values < _HIGHEST
    return out
