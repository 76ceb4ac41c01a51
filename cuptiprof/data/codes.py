"""Columns of integers of which few are different. What sorting would find out is found by marking, in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuptiprof.data.lazy_columns import Array

Int64 = npt.NDArray[np.int64]

_AT_ONCE = 1 << 18  # indices become int64 on the way: not all of them at once


def distinct(values: Array) -> Int64:
    """The values that occur, ascending."""
    lowest, span = _range(values)
    if span == 1:  # all alike, as devices mostly are
        return np.array([lowest], np.int64)
    if span > _most(values):
        ascending = np.sort(values).astype(np.int64)  # np.unique would import numpy.ma
        return ascending[np.r_[True, ascending[1:] != ascending[:-1]]]
    seen = np.zeros(span, bool)
    for first in range(0, len(values), _AT_ONCE):
        seen[_from(values[first : first + _AT_ONCE], lowest)] = True
    return np.flatnonzero(seen) + lowest


def renumbered(values: Array) -> tuple[Int64, npt.NDArray[np.uint32]]:
    """The values that occur, ascending, and for each row which of them it is: ``np.unique`` with its inverse."""
    used = distinct(values)
    lowest, span = _range(values)
    if span > _most(values):
        return used, np.searchsorted(used, values).astype(np.uint32)
    place = np.zeros(span, np.uint32)
    place[used - lowest] = np.arange(len(used), dtype=np.uint32)
    return used, place[_from(values, lowest)]


def distinct_rows(*columns: Array) -> tuple[Int64, npt.NDArray[np.uint32]]:
    """The rows that occur, shape (rows, columns), ascending, and for each row which of them it is."""
    found, which = renumbered(columns[0])
    rows = found[:, None]
    for column in columns[1:]:
        more, of_column = renumbered(column)
        # Numbered afresh with each column: the product stays below the square of the number of rows.
        used, which = renumbered(which.astype(np.int64) * len(more) + of_column)
        rows = np.column_stack([rows[used // max(len(more), 1)], more[used % max(len(more), 1)]])
    return rows, which


def first_rows(which: Array, count: int) -> Int64:
    """The first row of each of the numbers 0..count-1 in `which`."""
    out = np.zeros(count, np.int64)
    out[which[::-1]] = np.arange(len(which) - 1, -1, -1)  # of several the last that is written stays
    return out


def _range(values: Array) -> tuple[int, int]:
    if not len(values):
        return 0, 0
    lowest = int(values.min())
    return lowest, int(values.max()) - lowest + 1


def _most(values: Array) -> int:
    """As many marks as this take no longer than sorting would."""
    return 8 * len(values) + 1024


def _from(values: Array, lowest: int) -> Array:
    return values - values.dtype.type(lowest) if lowest else values
