"""Columns of a saved run's Parquet files, read and checked when they are first asked for.

At opening: the footers (row counts, names of the columns). On first use of a column: that every row has a value, that it fits the
column's type, and that codes lie within what they index. Small tables are read at once, so that no file of theirs stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cuptiprof.data.lazy_columns import Array, LazyColumns, joined
from cuptiprof.data.tables import ColumnSchema, Strings, Table, schema
from cuptiprof.errors import ResultError
from cuptiprof.io.arrow_arrays import to_numpy
from cuptiprof.io.damaged import damaged
from cuptiprof.io.opened_folder import OpenedFolder

SMALL_ROWS = 1 << 16
TEXTS = ColumnSchema("text", "uint32", True, "", "a string of the run")

Code = Callable[[str], int]


class ParquetTable:
    """The files of one table, open.

    Raises:
        ResultError: they are missing or damaged, or have not `rows` rows.
    """

    def __init__(self, folder: OpenedFolder, name: str, rows: int) -> None:
        import pyarrow.parquet as pq

        self.where = folder.path / name
        self.rows = rows
        with damaged(self.where):
            self._opened = [file.handed_to_arrow() for file in folder.parts(name)]
        if not self._opened:
            raise ResultError(f"{self.where}: missing, though run.json counts {rows} rows")
        texts = {c.name for c in schema().get(name, {}).values() if c.is_text}
        with damaged(self.where):
            footers = [pq.read_metadata(file) for file in self._opened]
            found = sum(footer.num_rows for footer in footers)
            self.names = set.intersection(*(set(footer.schema.to_arrow_schema().names) for footer in footers))
            self._files = [
                pq.ParquetFile(file, metadata=footer, read_dictionary=self.names.intersection(texts))
                for file, footer in zip(self._opened, footers, strict=True)
            ]
        if found != rows:
            raise ResultError(f"{self.where}: {found} rows, but run.json counts {rows}")

    def close(self) -> None:
        """All is read."""
        for file in self._opened:
            file.close()

    def require(self, spec: ColumnSchema) -> None:
        """A sparse column need not be there: the run was saved by a cuptiprof that did not have it, and each row has 0.

        Raises:
            ResultError: there is no such column.
        """
        if spec.name not in self.names and not spec.is_sparse:
            raise ResultError(f"{self.where}: column {spec.name} is missing")

    def column(self, spec: ColumnSchema, code: Code | None = None, rows: int | None = None) -> Array:
        """A column as it is kept in memory; texts by their `code`.

        Args:
            rows: only so many, the first.

        Raises:
            ResultError: damaged.
        """
        count = self.rows if rows is None else min(rows, self.rows)
        chunks = self._chunks(spec.name) if rows is None else self._first_chunks(spec.name, count)
        values = self._texts(spec, code, chunks) if code is not None else (to_numpy(c, spec.dtype) for c in chunks)
        with damaged(f"{self.where}: column {spec.name}"):
            if spec.name not in self.names:
                return np.zeros(count, spec.dtype)
            return joined(values, count, spec.dtype)

    def codes(self, spec: ColumnSchema, size: int, rows: int | None = None) -> Array:
        """A column of numbers that index something of `size` rows; `rows` as for `column`.

        Raises:
            ResultError: damaged, or one is out of range.
        """
        out = self.column(spec, rows=rows)
        if len(out) and int(out.max()) >= size:
            raise ResultError(f"{self.where}: column {spec.name}: {int(out.max())} of {size} rows")
        return out

    def texts(self) -> list[str]:
        """The texts of the string list, in order.

        Raises:
            ResultError: damaged.
        """
        with damaged(self.where):
            found = [text for chunk in self._chunks(TEXTS.name) for text in chunk.to_pylist()]
        if len(found) != self.rows or not all(isinstance(text, str) for text in found):
            raise ResultError(f"{self.where}: damaged (not a text in every row)")
        return found

    def _chunks(self, column: str) -> Iterator[Any]:
        for file in self._files:
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group, columns=[column], use_threads=False).column(0).chunks

    def _first_chunks(self, column: str, rows: int) -> Iterator[Any]:
        for file in self._files:
            for batch in file.iter_batches(batch_size=max(rows, 1), columns=[column], use_threads=False):
                if rows <= 0:
                    return
                yield batch.column(0)[:rows]
                rows -= len(batch)

    def _texts(self, spec: ColumnSchema, code: Code, chunks: Iterator[Any]) -> Iterator[Array]:
        import pyarrow as pa

        for chunk in chunks:
            array = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
            codes = np.array([code(_checked(text)) for text in array.dictionary.to_pylist()], np.uint32)
            indices = to_numpy(array.indices, "int32")
            if len(indices) and not (indices.min() >= 0 and indices.max() < len(codes)):
                raise ValueError("an index lies beyond its dictionary")
            yield codes[indices] if len(indices) else np.zeros(0, np.uint32)


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError("a row has no text")
    return text


def read_strings(folder: OpenedFolder, rows: int) -> Strings:
    """The string list of a run.

    Raises:
        ResultError: missing or damaged.
    """
    file = ParquetTable(folder, "strings", rows)
    file.require(TEXTS)
    strings = Strings(file.texts())
    file.close()
    return strings


def read_configs(file: ParquetTable, strings: Strings) -> Table:
    """``launch_configs``, of which the column ``config`` must be the row.

    Raises:
        ResultError: it is not, or as for `lazy_table`.
    """
    config = schema()["kernels"]["config"]
    file.require(config)
    numbers = file.column(config)
    if not np.array_equal(numbers, np.arange(file.rows)):
        raise ResultError(f"{file.where}: column config: damaged (it is not the number of the row)")
    return lazy_table(file, "launch_configs", strings, None)


def lazy_table(file: ParquetTable, name: str, strings: Strings, configs: Table | None) -> Table:
    """A table whose columns are read when they are first asked for, or now if it is small.

    Raises:
        ResultError: a column is missing; for a small table also what is wrong with its values.
    """
    columns = schema()[name]
    for spec in columns.values():
        file.require(spec)

    def known(text: str) -> int:
        code = strings.find(text)
        if code is None:
            raise ValueError(f"{text[:60]!r} is not in the run's list of strings")
        return code

    def make(column: str, rows: int | None = None) -> Array:
        spec = columns[column]
        if configs is not None and column == "config":
            return file.codes(spec, len(configs), rows)
        return file.column(spec, known if spec.is_text else None, rows)

    lazy = LazyColumns(columns, file.rows, make, make_first=make)
    if file.rows > SMALL_ROWS:
        return Table(name, lazy, strings, configs)
    read = dict(lazy)
    file.close()
    return Table(name, read, strings, configs)
