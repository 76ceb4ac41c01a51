"""Pieces of the trace's JSON text: exact times and escaped strings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from cuptiprof.tables import Array


def microseconds(ns: Array) -> list[str]:
    """Integer ns as microseconds with three decimals, exactly: no float is involved."""
    whole, rest = np.divmod(np.abs(np.asarray(ns, np.int64)), 1_000)
    signs = (np.asarray(ns) < 0).tolist()
    return [
        f"-{q}.{r:03d}" if negative else f"{q}.{r:03d}"
        for q, r, negative in zip(whole.tolist(), rest.tolist(), signs, strict=True)
    ]


def quoted(texts: Iterable[str]) -> list[str]:
    """JSON strings, ASCII only."""
    return [json.dumps(text) for text in texts]


def quoted_codes(codes: Array, strings: Sequence[str]) -> list[str]:
    """JSON strings of a column of string indices; each distinct string is escaped once."""
    used, inverse = np.unique(codes, return_inverse=True)
    texts = quoted(strings[int(code)] for code in used)
    return [texts[i] for i in inverse.reshape(-1).tolist()]
