"""Columns that are made when they are first asked for: read from a file, selected, or joined from several."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class LazyColumns(Mapping[str, Array]):
    """A mapping of columns of `rows` values each; ``make(name)`` is called once a column, by one thread at a time.

    ``make_first(name, rows)`` makes only its first values, where that is less work.

    A copy of it elsewhere (pickle) is a plain dict of all columns. What `owner` is lives as long as the columns do.
    """

    def __init__(
        self,
        names: Iterable[str],
        rows: int,
        make: Callable[[str], Array],
        owner: object = None,
        make_first: Callable[[str, int], Array] | None = None,
    ) -> None:
        self.rows = rows
        self._make_first = make_first
        self._owner = owner
        self._names = tuple(names)
        self._make = make
        self._made: dict[str, Array] = {}
        self._one_at_a_time = threading.Lock()

    def __getitem__(self, column: str) -> Array:
        found = self._made.get(column)
        if found is not None:
            return found
        if column not in self._names:
            raise KeyError(column)
        with self._one_at_a_time:
            if column not in self._made:
                made = self._make(column)
                made.flags.writeable = False
                self._made[column] = made
            return self._made[column]

    def first(self, column: str, rows: int) -> Array:
        """The first values of a column, at most so many; the whole of it is not made for that if it can be avoided."""
        if column in self._made or self._make_first is None or column not in self._names:
            return self[column][:rows]
        with self._one_at_a_time:
            return self._make_first(column, rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ({name: self[name] for name in self._names},)


def selected(columns: Mapping[str, Array], names: Iterable[str], rows: int, mask: Array) -> LazyColumns:
    """The rows of `columns` that `mask` selects: bool, one a row, or row numbers.

    Raises:
        IndexError: a mask of another length, or a row that is not there.
    """
    chosen = np.array(mask)  # a copy: the caller may change his before a column is asked for
    if chosen.dtype == bool:
        if chosen.shape != (rows,):
            raise IndexError(f"a mask of shape {chosen.shape} for {rows} rows")
        count = int(np.count_nonzero(chosen))
    else:
        chosen = chosen.astype(np.intp, casting="same_kind") if chosen.size else np.zeros(0, np.intp)
        if chosen.ndim != 1:
            raise IndexError(f"row numbers of shape {chosen.shape}")
        if len(chosen) and not (-rows <= chosen.min() and chosen.max() < rows):
            raise IndexError(f"row {chosen.min()}..{chosen.max()} of {rows} rows")
        count = len(chosen)
    return LazyColumns(names, count, lambda name: columns[name][chosen])


def joined(parts: Iterable[Array], rows: int, dtype: npt.DTypeLike) -> Array:
    """The parts one after the other. Memory of zeros alone is never touched, so that columns of zeros take none.

    Raises:
        ValueError: the parts have not `rows` values together.
    """
    out = np.zeros(rows, dtype)
    at = 0
    for part in parts:
        if at + len(part) > rows:
            raise ValueError(f"more than {rows} values")
        if out.dtype.kind == "f" or part.any():  # -0.0 is a zero too
            out[at : at + len(part)] = part
        at += len(part)
    if at != rows:
        raise ValueError(f"{at} values for {rows} rows")
    return out
