"""Columns on their way into the page: narrow integers, dictionaries for texts, one deflate stream, base64.

The stream inflates to: length of the head (4 bytes, little endian), the head (JSON: facts, and a description of each column), the columns'
bytes one after the other. Integers lie as differences to the lowest value, or to the row before where that is narrower, in as few bytes
as the largest needs, by planes: all lowest bytes, then all second ones. ``assets/columns.js`` is the other side.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuptiprof.data.tables import Array
from cuptiprof.text.names import printable

MAX_TEXT = 4000
"""characters of a text that a page keeps: names may be of any length"""
_EXACT = 1 << 53
"""integers up to here are exact as the float64 of which JavaScript's numbers are"""


@dataclass(frozen=True)
class Coded:
    """Texts by number: row i says ``texts[codes[i]]``; nothing where the code is negative."""

    codes: Array
    texts: Sequence[str]


PageColumn = Array | Coded | Sequence[str | None]
"""Numbers (NaN where one is missing), or texts."""


def pack(columns: Mapping[str, PageColumn], facts: Mapping[str, Any] | None = None) -> str:
    """Columns, each of its own length, and facts that JSON can say, as base64 for a script element of data.

    Texts are made printable, so that no control or mark that reorders text gets to a reader, and are cut at ``MAX_TEXT`` characters.
    Integers beyond 2^53 become the nearest float64, which is what the page computes with.

    Raises:
        TypeError: a column of objects that are not texts.
    """
    described, parts = [], []
    for name, column in columns.items():
        head, data = _column(column)
        described.append({"name": name, **head})
        parts.append(data)
    head_text = json.dumps({"facts": dict(facts or {}), "columns": described}, allow_nan=False).encode()
    squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
    out = [squeezer.compress(len(head_text).to_bytes(4, "little")), squeezer.compress(head_text)]
    out += [squeezer.compress(part) for part in parts]
    return base64.b64encode(b"".join([*out, squeezer.flush()])).decode()


def _column(column: PageColumn) -> tuple[dict[str, Any], bytes]:
    if isinstance(column, Coded):
        return _texts(column)
    if not isinstance(column, np.ndarray):
        return _texts(_coded(column))
    if column.dtype.kind in "biu":
        return _integers(column)
    if column.dtype.kind == "f":
        values = np.ascontiguousarray(column, "<f4" if column.dtype.itemsize <= 4 else "<f8")
        return {"kind": "float", "rows": len(values), "width": values.itemsize}, _planes(values)
    raise TypeError(f"no column of a page: {column.dtype}")


def _integers(column: Array) -> tuple[dict[str, Any], bytes]:
    if not len(column):
        return {"kind": "integer", "rows": 0, "width": 0, "base": 0, "step": None}, b""
    low, high = int(column.min()), int(column.max())
    if max(-low, high) > _EXACT:
        return _column(column.astype(np.float64))
    values = column.astype(np.int64)
    head: dict[str, Any]
    steps = np.diff(values, prepend=values[0])
    least = int(steps.min())
    plain, stepped = _bytes_for(high - low), _bytes_for(int(steps.max()) - least)
    if stepped < plain or (stepped == plain and least >= 0):
        head = {"base": int(values[0]), "step": least, "width": stepped}
        left = steps - least
    else:
        head = {"base": low, "step": None, "width": plain}
        left = values - low
    return {"kind": "integer", "rows": len(values), **head}, _planes(left.astype("<u8"))[: len(values) * head["width"]]


def _bytes_for(largest: int) -> int:
    return (largest.bit_length() + 7) // 8


def _planes(values: Array) -> bytes:
    """The lowest bytes of all values, then the next ones: alike bytes lie together, which deflate likes."""
    planes = values.view(np.uint8).reshape(len(values), values.itemsize).T
    return bytes(planes.tobytes())


def _coded(texts: Sequence[str | None]) -> Coded:
    known: dict[str | None, int] = {text: i for i, text in enumerate(t for t in dict.fromkeys(texts) if t is not None)}
    names = [text for text in known if text is not None]
    known[None] = -1
    return Coded(np.fromiter((known[text] for text in texts), np.int64, len(texts)), names)


def _texts(column: Coded) -> tuple[dict[str, Any], bytes]:
    """The numbers of the texts that occur, from 0; one less than that (the lowest) stands for none."""
    used, codes = np.unique(np.maximum(np.asarray(column.codes, np.int64), -1), return_inverse=True)
    has_none = bool(len(used)) and used[0] < 0
    head, data = _integers(codes.reshape(-1) - int(has_none))
    return {**head, "kind": "text", "texts": [page_text(column.texts[i]) for i in used[int(has_none) :].tolist()]}, data


def page_text(text: str) -> str:
    """What the page shows for a text."""
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text):,} characters)"
    return printable(cut)
