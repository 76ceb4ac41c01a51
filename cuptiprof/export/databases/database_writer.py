"""Writes tables of a SQLite file out of columns: every value is a parameter, and nobody but us holds the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np

from cuptiprof.data.codes import Int64, renumbered
from cuptiprof.data.tables import Array
from cuptiprof.errors import ResultError

_AT_ONCE = 1 << 16
"""rows whose values are Python objects at a time"""

Column: TypeAlias = "Array | Sequence[object] | int | str"
"""values of all rows; or one that all have"""


class DatabaseWriter:
    """A database in the making, in one transaction; the file is of no use until :func:`new_database` is left."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self, table: str, columns: str) -> None:
        """A table, of ``"name TYPE, ..."``: names and types are ours, never the run's."""
        quoted = ", ".join(
            f'"{name}" {kind}' for name, _, kind in (c.strip().partition(" ") for c in columns.split(","))
        )
        self._connection.execute(f'CREATE TABLE "{table}" ({quoted})')

    def add(self, table: str, rows: int, columns: Mapping[str, Column], none: Mapping[str, int] | None = None) -> None:
        """Rows of a table; columns that are not given are NULL.

        Args:
            none: columns in which a number stands for "there is none": NULL is written for it.
        """
        none = none or {}
        given = {name: values for name, values in columns.items() if not _is_all(values, none.get(name))}
        names = ", ".join(f'"{name}"' for name in given)
        marks = ", ".join(f"NULLIF(?, {none[name]})" if name in none else "?" for name in given)
        statement = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'
        for first in range(0, rows, _AT_ONCE):
            after = min(first + _AT_ONCE, rows)
            parts = [_objects(values, first, after) for values in given.values()]
            self._connection.executemany(statement, zip(*parts, strict=True))


class NumberedTexts:
    """The texts of a database, each under a number from 1 on.

    What is no UTF-8 (half a surrogate pair) and what ends a text for programs in C (a null character) is written out:
    ``\\ud800``, ``\\x00``.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Of a text."""
        return self._numbers.setdefault(storable(text), len(self._numbers) + 1)

    def of(self, codes: Array, strings: Sequence[str]) -> Int64:
        """Of each row of a text column: indices into the strings of the run, shape (rows,)."""
        used, which = renumbered(codes)
        numbers = np.array([self.number(strings[code]) for code in used.tolist()], np.int64)
        return numbers[which] if len(numbers) else np.zeros(0, np.int64)

    def write(self, database: DatabaseWriter, table: str, key: str) -> None:
        """As rows of a table of a key and a column ``value``."""
        texts = list(self._numbers)
        database.add(table, len(texts), {key: np.arange(1, len(texts) + 1), "value": texts})


def storable(text: str) -> str:
    """A text as SQLite and its readers can hold it."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


@contextmanager
def new_database(path: Path) -> Iterator[DatabaseWriter]:
    """The file, written anew.

    Raises:
        ResultError: it cannot be written.
    """
    path.unlink(missing_ok=True)
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            # A file that is thrown away when something goes wrong needs no journal, and nobody else opens it meanwhile.
            for pragma in (
                "journal_mode = OFF",
                "synchronous = OFF",
                "locking_mode = EXCLUSIVE",
                "cache_size = -65536",
            ):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN")
            yield DatabaseWriter(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()
    except sqlite3.Error as e:
        raise ResultError(f"cannot write a database: {e}", hint="is the disk full?") from None


def _is_all(values: Column, none: int | None) -> bool:
    """Whether the whole column would be NULL."""
    return none is not None and (
        not np.asarray(values != none).any() if isinstance(values, np.ndarray) else values == none
    )


def _objects(values: Column, first: int, after: int) -> Sequence[object] | Iterator[object]:
    if isinstance(values, (int, str)):
        return list(repeat(values, after - first))
    part = values[first:after]
    if not isinstance(part, np.ndarray):
        return part
    # SQLite's integers have a sign: addresses above 2**63 are negative ones there.
    signed = part.view(np.int64) if part.dtype == np.uint64 else part
    objects: list[object] = signed.tolist()
    return objects
