"""One table of a run as a file of columns: Parquet, Arrow, CSV, for pandas, Polars, DuckDB and spreadsheets.

Columns are those of ``Table.all_columns``: kernels with their launch configuration, duration and metrics. Of kernels ``name`` is the name that
people know, and ``mangled_name`` that of the driver. Texts are texts, in Parquet and Arrow encoded as dictionaries; a number that is missing (NaN) is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.codes import Int64, distinct
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Array, Strings, Table, texts_to_arrow
from cuptiprof.errors import ResultError
from cuptiprof.export.output_stream import opened_output
from cuptiprof.io.arrow_arrays import to_arrow
from cuptiprof.io.run_writer import ROWS_AT_ONCE
from cuptiprof.report.render.to_csv import safe_text
from cuptiprof.text.names import display_name, printable
from cuptiprof.version import __version__

USUAL = "kernels"
"""the table that is written when nobody says which"""
_NAMED = ("kernels", "metric_ranges")
"""tables with names of kernels"""


def write_parquet(result: Result, path: Path, compress: bool, progress: Progress | None, table: str) -> None:
    """With zstd, whose Parquet every reader of the last years knows; a million rows a row group."""
    del compress
    import pyarrow.parquet as pq

    def write(columns: _Columns) -> None:
        with path.open("wb") as f, pq.ParquetWriter(f, columns.schema(), compression="zstd") as writer:
            for part in columns.parts(progress):
                writer.write_table(part, row_group_size=ROWS_AT_ONCE)

    _written(result, table, str, write)


def write_arrow(result: Result, path: Path, compress: bool, progress: Progress | None, table: str) -> None:
    """An IPC file (Feather 2), not compressed, so that it can be mapped."""
    del compress
    import pyarrow as pa

    def write(columns: _Columns) -> None:
        with path.open("wb") as f, pa.ipc.new_file(f, columns.schema()) as writer:
            for part in columns.parts(progress):
                writer.write_table(part)

    _written(result, table, str, write)


def write_csv(result: Result, path: Path, compress: bool, progress: Progress | None, table: str) -> None:
    """A line of names, then texts in quotes, in which nothing runs as a formula. Before it, where numbers are simulated or something was lost,
    lines that say so and begin with ``#``."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    notes = ["SIMULATED"] * result.simulated + [result.losses.line()] * bool(result.losses)
    options = pa_csv.WriteOptions(include_header=False)

    def write(columns: _Columns) -> None:
        with opened_output(path, compress) as out:
            for note in notes:
                out.write(f"# {printable(note)}\n".encode())
            out.write((",".join(_header(safe_text(name)) for name in columns.schema().names) + "\n").encode())
            for part in columns.parts(progress):
                plain = pa.table([_decoded(column) for column in part.columns], names=part.column_names)
                sink = pa.BufferOutputStream()
                pa_csv.write_csv(plain, sink, options)
                out.write(sink.getvalue().to_pybytes())

    _written(result, table, safe_text, write)


class _Columns:
    """A table as Arrow's, a million rows at a time; a text column has one dictionary for all of them."""

    def __init__(self, result: Result, table: Table, shown: Callable[[str], str]) -> None:
        self._result, self._table, self._shown = result, table, shown
        self._names = list(table.all_columns)
        if table.name in _NAMED:
            self._names.insert(self._names.index("name") + 1, "mangled_name")
        self._used: dict[str, tuple[Int64, Array, Any]] = {}

    def schema(self) -> Any:
        """Names, types, units and what is said of the columns; of the table, whether it is simulated and when time 0 was."""
        import pyarrow as pa

        empty = self._table.head(0)
        fields = []
        for name in self._names:
            spec = self._table.spec(_stored(name))
            array = self._column(name, empty, 0, 0)
            fields.append(pa.field(name, array.type, metadata={"unit": spec.unit, "doc": spec.doc}))
        about: dict[str, Any] = {"table": self._table.name, "version": __version__, "simulated": self._result.simulated}
        if self._result.metadata.get("clock_pairs"):
            about["unix_time_of_0_ns"] = self._result.clock_to_unix(0)
        return pa.schema(fields, metadata={"cuptiprof": json.dumps(about)})

    def parts(self, progress: Progress | None) -> Iterator[Any]:
        """The rows."""
        import pyarrow as pa

        rows, schema = len(self._table), self.schema()
        for first in range(0, rows, ROWS_AT_ONCE):
            after = min(first + ROWS_AT_ONCE, rows)
            part = self._table if rows <= ROWS_AT_ONCE else self._table.where(np.arange(first, after))
            yield pa.Table.from_arrays([self._column(name, part, first, after) for name in self._names], schema=schema)
            if progress is not None:
                progress(after, rows)

    def _column(self, name: str, part: Table, first: int, after: int) -> Any:
        if self._table.spec(_stored(name)).is_text:
            return self._texts(name, part.codes(_stored(name)))
        if name in (self._table.counters or ()):
            # A metric is joined to all kernels at once.
            return _without_nan(self._table[name][first:after])
        return _without_nan(part[name])

    def _texts(self, name: str, codes: Array) -> Any:
        import pyarrow as pa

        if name not in self._used:
            self._used[name] = self._dictionary(name, self._table.strings)
        used, place, texts = self._used[name]
        indices = place[np.searchsorted(used, codes)] if len(used) else np.zeros(0, np.int32)
        return pa.DictionaryArray.from_arrays(to_arrow(indices), texts)

    def _dictionary(self, name: str, strings: Strings) -> tuple[Int64, Array, Any]:
        """The codes that occur, the place of each in the dictionary, and its texts: each once, though codes may be shown alike."""
        used = distinct(self._table.codes(_stored(name)))
        texts = [strings[code] for code in used.tolist()]
        if self._table.name in _NAMED and name == "name":
            texts = [display_name(text) for text in texts]
        texts = [self._shown(text).encode("utf-8", "backslashreplace").decode() for text in texts]
        places: dict[str, int] = {}
        place = np.array([places.setdefault(text, len(places)) for text in texts], np.int32)
        return used, place, texts_to_arrow(list(places))


def _written(result: Result, table: str, shown: Callable[[str], str], write: Callable[[_Columns], None]) -> None:
    import pyarrow as pa

    try:
        write(_Columns(result, result.tables[table], shown))
    except pa.ArrowException as e:
        raise ResultError(f"cannot write {table}: {e}") from None


def _stored(name: str) -> str:
    return "name" if name == "mangled_name" else name


def _without_nan(values: Array) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = to_arrow(values)
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array) if values.dtype.kind == "f" else array


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _header(name: str) -> str:
    """Of a metric: a name may be anything."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if any(c in name for c in ',"') else name
