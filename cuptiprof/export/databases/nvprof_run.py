"""What the parts of a database of nvprof share: the file, its texts, its time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuptiprof.data.codes import Int64, renumbered
from cuptiprof.data.result import Result, gpu_span
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.databases.database_writer import Column, DatabaseWriter, NumberedTexts
from cuptiprof.export.databases.nvprof_schema import TABLES

THREAD = 2
"""CUpti_ActivityObjectKind"""


class NvprofRun:
    """A result on its way to a database."""

    def __init__(self, result: Result, database: DatabaseWriter) -> None:
        self.result, self.texts, self._database = result, NumberedTexts(), database
        clock = Clock(result, gpu_span(result)[0])
        self.who = Identity(result, clock)
        self._offset = clock.unix_offset
        for table, columns in TABLES.items():
            database.create(table, columns)

    def unix(self, ns: Array) -> Int64:
        """Times of the run clock as the file's: Unix time, ns (as they are where nobody knows it)."""
        return np.asarray(ns, np.int64) + self._offset

    def span(self, table: Table) -> dict[str, Column]:
        """``start`` and ``end``."""
        return {"start": self.unix(table["start"]), "end": self.unix(table["end"])}

    def names(self, table: Table, column: str) -> Int64:
        """A text column by the numbers of ``StringTable``."""
        return self.texts.of(table.codes(column), table.strings)

    def threads(self, thread: Array) -> list[object]:
        """``CUpti_ActivityObjectKindId`` of each thread: the process, the thread, and what is not used."""
        used, which = renumbered(thread)
        pid = self.who.pid & 0xFFFFFFFF
        blobs = np.array([*(np.array([pid, t, 0], "<u4").tobytes() for t in used.tolist()), None], object)[:-1]
        found: list[object] = blobs[which].tolist()
        return found

    def add(self, table: str, rows: int, columns: Mapping[str, Column]) -> None:
        """As :meth:`DatabaseWriter.add`."""
        if rows:
            self._database.add(table, rows, columns)

    def finish(self) -> None:
        """Writes the texts."""
        self.texts.write(self._database, "StringTable", "_id_")
