"""Rows of a database's table as columns in the making. What makes no sense is left out and counted."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.io.sqlite.database import MAX_ROWS, MISSING, WRONG, Database, Int64

LONGEST = 2**62
"""ns; what is beyond is no time"""
_SHOWN = 6
_U32 = 0xFFFFFFFF

Mask = npt.NDArray[np.bool_]


class LeftOut:
    """What of a database is not in the result.

    Attributes:
        count: rows that make no sense.
        tables: how many rows of each table that nothing is made of.
    """

    def __init__(self) -> None:
        self.count = 0
        self.tables: dict[str, int] = {}
        self._first: tuple[str, int, str] | None = None

    def add(self, table: str, rows: Int64, why: str) -> None:
        """Rows of a table by their place in it, from 0, all for one reason."""
        self.count += len(rows)
        if len(rows) and self._first is None:
            self._first = table, int(rows[0]), why

    def not_kept(self, what: str, count: int) -> None:
        """So many of a kind that has no place in the result."""
        if count > 0:
            self.tables[what] = self.tables.get(what, 0) + count

    def metadata(self) -> dict[str, Any]:
        """Keys "not_kept", "skipped_first" and "note", each where there is something to say."""
        out: dict[str, Any] = {}
        notes = []
        if self._first is not None:
            table, row, why = self._first
            out["skipped_first"] = {"table": table, "row": row, "reason": why}
            notes.append(
                f"{self.count:,} rows of the database make no sense and are left out, first row {row} of {table} ({why})"
            )
        if self.tables:
            out["not_kept"] = dict(sorted(self.tables.items()))
            most = sorted(self.tables.items(), key=lambda item: (-item[1], item[0]))
            named = [f"{count:,} {what}" for what, count in most[:_SHOWN]]
            more = [f"{len(most) - _SHOWN} other kinds"] if len(most) > _SHOWN else []
            notes.append(f"not kept of the database: {', '.join(named + more)}")
        return {**out, **({"note": "; ".join(notes)} if notes else {})}


class TableRows:
    """Rows of a table, of the columns asked for; a table that is not there has none.

    Attributes:
        table: its name.
        row: place of each row in it.
    """

    def __init__(self, database: Database, left_out: LeftOut, table: str, columns: Sequence[str]) -> None:
        self.table, self._left_out = table, left_out
        self._values = database.integers(table, columns)
        self.row = np.arange(len(next(iter(self._values.values()))))
        self._good = np.ones(len(self.row), bool)
        if len(self.row) == MAX_ROWS:
            left_out.not_kept(f"{table} beyond {MAX_ROWS:,} rows", database.count(table) - MAX_ROWS)

    def __len__(self) -> int:
        return len(self.row)

    def where(self, mask: Mask) -> TableRows:
        """Some of the rows."""
        some = copy.copy(self)
        some._values = {name: values[mask] for name, values in self._values.items()}
        some.row, some._good = self.row[mask], self._good[mask]
        return some

    def has(self, column: str) -> Mask:
        """Which rows have something there."""
        there: Mask = self._values[column] != MISSING
        return there

    def number(self, column: str, default: int = 0) -> Int64:
        """Integers of any size; `default` where there is none. A row with something else than an integer is left out."""
        values = self._values[column]
        self.refuse(values == WRONG, f"{column} is no integer")
        return np.where(values > WRONG, values, default)

    def count(self, column: str, bits: int = 32, default: int = 0) -> Int64:
        """Integers that must fit so many bits, unsigned, or the row is left out."""
        values = self.number(column, default)
        fits = (values >= 0) & (values < 1 << bits) if bits < 63 else values >= 0
        if not fits.all():
            worst = int(values[~fits][0])
            self.refuse(~fits, f"{column} is {worst}, which does not fit {bits} bits")
        return np.where(fits, values, 0)

    def low32(self, column: str) -> Int64:
        """Integers modulo 2**32."""
        return self.number(column) & _U32

    def time(self, column: str) -> Int64:
        """A time in ns; without one the row is left out."""
        values = self.number(column, MISSING)
        self.refuse(values == MISSING, f"it has no {column}")
        within = (values > -LONGEST) & (values < LONGEST)
        self.refuse((values != MISSING) & ~within, f"{column} is out of range")
        return np.where(within, values, 0)

    def span(self) -> tuple[Int64, Int64]:
        """``start`` and ``end``; a row whose end lies before its start is left out."""
        start, end = self.time("start"), self.time("end")
        self.refuse(end < start, "its end lies before its start")
        return start, end

    def refuse(self, mask: Mask, why: str) -> None:
        """Leaves those rows out."""
        mask = mask & self._good
        if mask.any():
            self._left_out.add(self.table, self.row[mask], why)
            self._good &= ~mask

    def kept(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """Columns without the rows that are left out."""
        if self._good.all():
            return dict(made)
        return {name: np.asarray(values)[self._good] for name, values in made.items()}
