"""Pieces of the trace's JSON text: exact times and escaped strings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Array

# Readers multiply what they parsed by 1,000 and cut: Perfetto the whole number, or its decimals alone. Which decimals that costs
# a nanosecond is fixed for the second kind.
_CUT_DECIMALS = np.array([int(r / 1_000 * 1_000) != r for r in range(1_000)])
_DECIMALS = [f".{r:03d}" for r in range(1_000)]
_EXACT_BELOW = 7 * 10**14  # ns; a fourth decimal changes the float64 of such a number of microseconds


def microseconds(ns: Array) -> list[str]:
    """Integer ns as microseconds with three decimals, exactly: no float is involved.

    A fourth decimal, 1, stands where a float64 of three would lose a nanosecond to readers that cut. Without it slices that end
    together would not nest any more.
    """
    ns = np.asarray(ns, np.int64)
    size = np.abs(ns)
    whole, rest = np.divmod(size, 1_000)
    is_cut = _CUT_DECIMALS[rest] | ((size / 1_000.0 * 1_000.0).astype(np.int64) != size)
    is_cut &= (rest != 0) & (size < _EXACT_BELOW)
    out = [f"{q}{_DECIMALS[r]}" for q, r in zip(whole.tolist(), rest.tolist(), strict=True)]
    for i in np.flatnonzero(is_cut).tolist():
        out[i] += "1"
    for i in np.flatnonzero(ns < 0).tolist():
        out[i] = f"-{out[i]}"
    return out


def quoted(texts: Iterable[str]) -> list[str]:
    """JSON strings, ASCII only."""
    return [json.dumps(text) for text in texts]


def quoted_codes(codes: Array, strings: Sequence[str]) -> list[str]:
    """JSON strings of a column of string indices; each distinct string is escaped once."""
    used, which = renumbered(codes)
    texts = quoted(strings[code] for code in used.tolist())
    return [texts[i] for i in which.tolist()]
