"""A SQLite file of somebody else's, read as columns: nothing in it is run, written, or believed.

Only tables proper are read: a view or a virtual table under a known name is none, and generated columns are missing. Values that are not of
their column's type are told apart from those that are missing. Rows come in batches, so that a file may be larger than memory allows for its rows as objects.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from cuptiprof.errors import ResultError

Int64 = npt.NDArray[np.int64]

MISSING, WRONG = -(2**63), -(2**63) + 1
"""In columns of integers: there is nothing there; there is something else than an integer."""
MAX_ROWS = 10_000_000
"""Rows of a table that are read; the rest is counted."""
MAX_TEXTS = 5_000_000
_LEAST_ROW = 5
"""bytes of the smallest row: its place in the page, its length, its number, its header"""
LONGEST_TEXT = 65_536
"""characters"""
_BATCH = 1 << 16
_LONGEST_VALUE = 64 << 20
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
_FUNCTIONS = frozenset({"typeof", "substr", "length", "count"})


class Database:
    """A file that is open.

    Attributes:
        tables: name -> its columns, of all tables proper.
    """

    def __init__(self, path: Path) -> None:
        """Raises ResultError: it cannot be read, or is no database."""
        self._path = path
        self._room = path.stat().st_size // _LEAST_ROW if path.is_file() else 0
        self._connection: sqlite3.Connection | None = None
        with self._errors():
            # immutable: no lock, no journal is looked for beside it, and a file that changes meanwhile is the caller's affair.
            connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
            self._connection = connection
            for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0"):
                connection.execute(f"PRAGMA {pragma}")
            if sys.version_info >= (3, 11):
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
                connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.text_factory = _text
            self.tables = self._tables(connection)
            connection.set_authorizer(_authorize)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()

    def has(self, *tables: str) -> bool:
        """Whether all of these are tables."""
        return all(table in self.tables for table in tables)

    def count(self, table: str) -> int:
        """How many rows."""
        found = self._rows(f"SELECT count(*) FROM (SELECT 1 FROM {_quoted(table)} NOT INDEXED LIMIT {self._room + 1})")
        return self._believed(int(next(found, [(0,)])[0][0]))

    def integers(self, table: str, columns: Sequence[str]) -> dict[str, Int64]:
        """Columns of integers, shape (rows,), in the order of the table; :data:`MISSING` and :data:`WRONG` where there is none. Columns that the
        table has not are missing in every row."""
        there = [column for column in columns if column in self.tables.get(table, ())]
        parts: list[list[Int64]] = [[np.empty(0, np.int64)] for _ in there]
        rows = 0
        if there:
            wanted = ", ".join(_integer(column) for column in there)
            for batch in self._rows(f"SELECT {wanted} {self._from(table)}"):
                rows += len(batch)
                for part, values in zip(parts, np.array(batch, np.int64).T, strict=True):
                    part.append(values.copy())
        out: dict[str, Int64] = {}
        for column, part in zip(there, parts, strict=True):
            out[column] = np.concatenate(part)
            part.clear()  # a table is in memory once
        return {column: out[column] if column in out else np.full(rows, MISSING) for column in columns}

    def texts(self, table: str, column: str) -> list[str]:
        """A column of texts, in the order of the table, each up to 65,536 characters; "" where there is none."""
        if column not in self.tables.get(table, ()):
            return []
        name = _quoted(column)
        wanted = f"CASE typeof({name}) WHEN 'text' THEN substr({name}, 1, {LONGEST_TEXT}) ELSE '' END"
        batches = self._rows(f"SELECT {wanted} {self._from(table)}")
        return [row[0] for batch in batches for row in batch]

    def blobs(self, table: str, column: str, size: int) -> npt.NDArray[np.uint8]:
        """The first bytes of a column of blobs, shape (rows, size); zeros where there are fewer."""
        name, none = _quoted(column), "00" * size
        enough = f"typeof({name}) = 'blob' AND length({name}) >= {size}"
        wanted = f"CASE WHEN {enough} THEN substr({name}, 1, {size}) ELSE x'{none}' END"
        batches = self._rows(f"SELECT {wanted} {self._from(table)}")
        joined = b"".join(row[0] for batch in batches for row in batch)
        return np.frombuffer(joined, np.uint8).reshape(-1, size)

    def strings(self, table: str, key: str, value: str) -> Mapping[int, str]:
        """Number -> text, of a table of texts; those that are no text are missing."""
        if not {key, value} <= set(self.tables.get(table, ())):
            return {}
        text, number = _quoted(value), _quoted(key)
        found = self._rows(
            f"SELECT {number}, substr({text}, 1, {LONGEST_TEXT}) FROM {_quoted(table)} "
            f"WHERE typeof({number}) = 'integer' AND typeof({text}) = 'text' LIMIT {min(MAX_TEXTS, self._room + 1)}"
        )
        return {int(row[0]): row[1] for batch in found for row in batch}

    def _from(self, table: str) -> str:
        """Without indexes, so that all columns come in the order of the table; no more rows than there can be."""
        return f"FROM {_quoted(table)} NOT INDEXED LIMIT {min(MAX_ROWS, self._room + 1)}"

    def _believed(self, rows: int) -> int:
        """Pages that lead to each other in circles or by many ways hold more rows than a file has room for."""
        if rows > self._room:
            raise ResultError(f"{self._path}: damaged SQLite database (more rows than it has room for)")
        return rows

    def _rows(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        assert self._connection is not None
        with self._errors():
            cursor, rows = self._connection.execute(query), 0
            while batch := cursor.fetchmany(_BATCH):
                rows = self._believed(rows + len(batch))
                yield batch

    @staticmethod
    def _tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
        """Tables proper: what has no page of its own is a view, or virtual."""
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND typeof(name) = 'text'"
        ).fetchall()
        # table_info leaves generated columns out.
        return {
            name: tuple(column[1] for column in connection.execute(f"PRAGMA table_info({_quoted(name)})"))
            for (name,) in found
            if "\0" not in name
        }

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as e:
            raise ResultError(f"{self._path}: truncated or damaged SQLite database ({str(e)[:200]})") from None


def _integer(column: str) -> str:
    name = _quoted(column)
    return f"CASE typeof({name}) WHEN 'integer' THEN {name} WHEN 'null' THEN ({WRONG} - 1) ELSE {WRONG} END"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(raw: bytes) -> str:
    """What is no UTF-8 is written as ``\\xNN``."""
    return raw.decode("utf-8", "backslashreplace")


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Reading tables of the file itself, and a few functions."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if second in _FUNCTIONS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
