"""What the parts of a database of Nsight Systems share: the file, its texts, who is who in it, and its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cuptiprof.data.codes import Int64
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.databases.database_writer import Column, DatabaseWriter, NumberedTexts
from cuptiprof.export.databases.global_ids import GlobalIds
from cuptiprof.export.databases.nsys_schema import ALWAYS, TABLES

_TIMES = (("start", "end"), ("timestamp",))


class NsysRun:
    """A result on its way to a database.

    Attributes:
        ids: globalPid and globalTid.
        begin, end: first and last time of the run, run clock; times in the file count from ``begin``.
    """

    def __init__(self, result: Result, database: DatabaseWriter) -> None:
        self.result, self.texts = result, NumberedTexts()
        self.begin, self.end = _first_and_last(result)
        self.who = Identity(result, Clock(result, self.begin))
        self.ids = GlobalIds(result, self.who)
        self._database = database
        self._made: set[str] = set()
        for table in ALWAYS:
            self._make(table)

    def since(self, ns: Array) -> Int64:
        """Times of the run clock as the file's, ns."""
        return np.asarray(ns, np.int64) - self.begin

    def span(self, table: Table) -> dict[str, Column]:
        """``start`` and ``end``."""
        return {"start": self.since(table["start"]), "end": self.since(table["end"])}

    def names(self, table: Table, column: str) -> Int64:
        """A text column by the numbers of ``StringIds``."""
        return self.texts.of(table.codes(column), table.strings)

    def add(self, table: str, rows: int, columns: Mapping[str, Column], none: Mapping[str, int] | None = None) -> None:
        """As :meth:`DatabaseWriter.add`; the table is made with its first rows."""
        if rows:
            self._make(table)
            self._database.add(table, rows, columns, none)

    def finish(self) -> None:
        """Writes the texts."""
        self.texts.write(self._database, "StringIds", "id")

    def _make(self, table: str) -> None:
        if table not in self._made:
            self._made.add(table)
            self._database.create(table, TABLES[table])


def _first_and_last(result: Result) -> tuple[int, int]:
    times: list[Any] = [
        result.tables[name][column]
        for name, columns in ((n, c) for n in result.tables for c in _TIMES)
        for column in columns
        if column in result.tables[name] and len(result.tables[name])
    ]
    if not times:
        at = int(result.metadata.get("start_time_ns") or 0)
        return at, at
    return min(int(t.min()) for t in times), max(int(t.max()) for t in times)
