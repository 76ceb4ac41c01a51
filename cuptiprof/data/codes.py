"""Columns of codes: integers from 0 that index a list. What sorting would find out is found by marking, in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuptiprof.data.lazy_columns import Array

_AT_ONCE = 1 << 18  # indices become int64 on the way: not all of them at once


def distinct(codes: Array) -> npt.NDArray[np.intp]:
    """The codes that occur, ascending. Memory is that of the largest code, so they must be checked by now."""
    if not len(codes):
        return np.zeros(0, np.intp)
    if int(codes.max()) > 8 * len(codes):
        return np.unique(codes).astype(np.intp)
    seen = np.zeros(int(codes.max()) + 1, bool)
    for first in range(0, len(codes), _AT_ONCE):
        seen[codes[first : first + _AT_ONCE]] = True
    return np.flatnonzero(seen)


def renumbered(codes: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint32]]:
    """The codes that occur, ascending, and for each row which of them it is: ``np.unique`` with its inverse."""
    used = distinct(codes)
    if len(used) and int(used[-1]) > 8 * len(codes):
        return used, np.searchsorted(used, codes).astype(np.uint32)
    place = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.uint32)
    place[used] = np.arange(len(used), dtype=np.uint32)
    return used, place[codes]
