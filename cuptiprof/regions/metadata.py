"""What a region is given beside its name, as JSON; and a name for what is no str.

An annotation never raises into the program, whatever it is given, and never waits for the GPU: of an array on a device
the shape is written, not the values.
"""

from __future__ import annotations

import functools
import inspect
import json
from typing import Any

_PLAIN = frozenset({str, int, float, bool})
_COUNTS = frozenset({"flops", "bytes"})  # have columns
_ITEMS = 64  # of a list or dict, nested ones included; a larger one is only described
_DEPTH = 4
_TEXT = 200  # characters of what stands for an object


def encode_metadata(metadata: dict[str, Any]) -> tuple[str, int, int]:
    """The keywords of a region as a JSON object ("" if none), how many were written as text, and how many were left out.

    ``flops`` and ``bytes`` are not among them. Numbers of other libraries (NumPy, torch scalars) are Python numbers here.
    """
    rest = {k: v for k, v in metadata.items() if k not in _COUNTS}
    if not rest:
        return "", 0, 0
    if _PLAIN.issuperset(map(type, rest.values())):
        try:
            return json.dumps(rest), 0, 0
        except Exception:  # an int of too many digits
            pass
    return _encode_odd(rest)


def _encode_odd(metadata: dict[str, Any]) -> tuple[str, int, int]:
    written: dict[str, Any] = {}
    as_text = 0
    for key, value in metadata.items():
        writer = _Writer()
        try:
            written[key] = json.loads(json.dumps(writer.write(value, _DEPTH)))
        except Exception:
            continue
        as_text += writer.wrote_text
    return json.dumps(written) if written else "", as_text, len(metadata) - len(written)


class _Writer:
    """One value as what JSON has."""

    def __init__(self) -> None:
        self.wrote_text = False
        self._left = _ITEMS

    def write(self, value: Any, depth: int) -> Any:
        if value is None or type(value) in _PLAIN:
            return value
        if isinstance(value, (list, tuple, dict)):
            self._left -= len(value)
            if self._left < 0 or depth == 0:
                return self._text(f"{type(value).__name__} of {len(value)}")
            if isinstance(value, dict):
                return {str(k)[:_TEXT]: self.write(v, depth - 1) for k, v in value.items()}
            return [self.write(v, depth - 1) for v in value]
        if isinstance(value, (str, int, float)):  # subclasses: enumerations
            return value
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            if len(value.shape) or str(getattr(value, "device", "cpu")) != "cpu":
                return self._text(f"{type(value).__name__}{list(value.shape)}")
            return value.item()
        return self._text(_short(value))

    def _text(self, text: str) -> str:
        self.wrote_text = True
        return text


def name_of(given: Any) -> tuple[str, bool]:
    """A region's name for what is no str, and whether that is a function to be decorated (``@region``)."""
    if isinstance(given, functools.partial):
        return name_of(given.func)
    if inspect.isroutine(given) or inspect.isclass(given):
        qualified = getattr(given, "__qualname__", None) or type(given).__name__
        return str(qualified).rpartition("<locals>.")[2], True
    try:
        return _short(given), False
    except Exception:
        return type(given).__name__, False


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _TEXT and "\n" not in text else type(value).__name__
