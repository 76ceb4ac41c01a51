"""Columnar tables: NumPy views of what the collector (or a file) holds, with one string list for a whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cuptiprof import _core
from cuptiprof.data.codes import renumbered
from cuptiprof.data.lazy_columns import LazyColumns, joined, selected
from cuptiprof.errors import ResultError
from cuptiprof.text.html import html_line, html_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Array = npt.NDArray[Any]

_IN_A_NOTEBOOK = 10
_NOTEBOOK_TEXT = 80
"""rows, and characters of a text, that a notebook shows"""


@dataclass(frozen=True)
class ColumnSchema:
    """One column of the schema: `dtype` is a NumPy dtype name; `is_text` columns hold indices into the string list; `is_sparse`
    ones are 0 in most runs."""

    name: str
    dtype: str
    is_text: bool
    unit: str
    doc: str
    is_sparse: bool = False


@lru_cache(maxsize=1)
def schema() -> dict[str, dict[str, ColumnSchema]]:
    """Every table and its columns, in order, as the native library declares them."""
    return {table: {c[0]: ColumnSchema(*c) for c in columns} for table, _, _, columns in _core.schema()}


class Strings(Sequence[str]):
    """The string list of a run. Index 0 is the empty string."""

    def __init__(self, values: Iterable[str] = ("",)) -> None:
        self._values = list(values)
        if not self._values or self._values[0] != "":
            self._values.insert(0, "")
        self._index: dict[str, int] | None = None

    def __getitem__(self, i: Any) -> Any:
        return self._values[i]

    def __len__(self) -> int:
        return len(self._values)

    def code(self, text: str) -> int:
        """Index of `text`, appended if it is new."""
        found = self.find(text)
        if found is None:
            assert self._index is not None
            found = self._index[text] = len(self._values)
            self._values.append(text)
        return found

    def find(self, text: str) -> int | None:
        """Index of `text`; None: it is not in the list."""
        if self._index is None:
            self._index = {s: i for i, s in enumerate(self._values)}
        return self._index.get(text)

    def array(self) -> Array:
        """All strings, dtype object."""
        out = np.empty(len(self._values), object)
        out[:] = self._values
        return out


class KernelCounters(Protocol):
    """What a table of kernels asks for the counters measured on them."""

    def __contains__(self, metric: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def of_kernels(self, kernels: Table, metric: str) -> Array: ...


class Table:
    """Columns of equal length.

    ``table["start"]`` is the stored column: a read-only view, not a copy; of a large saved run it is read when it is first asked
    for (ResultError if it is damaged). Text columns come as object arrays of str
    (``table.codes("name")`` is the stored uint32 index). ``kernels`` also answers to the columns of ``launch_configs``
    (``table["grid_x"]``) and to the metrics of the run (``table["achieved_occupancy"]``: float64, NaN where not measured),
    and every table with start and end to ``"duration"`` (ns).
    """

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Array],
        strings: Strings,
        configs: Table | None = None,
    ) -> None:
        self.name = name
        self.strings = strings
        self.configs = configs
        self.counters: KernelCounters | None = None
        self.stacks: Table | None = None  # of kernels, in a result
        self._columns = columns
        self._schema = schema()[name]
        self._rows = columns.rows if isinstance(columns, LazyColumns) else len(columns[next(iter(self._schema))])

    @classmethod
    def empty(cls, name: str, strings: Strings | None = None, configs: Table | None = None) -> Table:
        """A table of no rows."""
        columns = {c.name: np.empty(0, c.dtype) for c in schema()[name].values()}
        return cls(name, columns, strings if strings is not None else Strings(), configs)

    @classmethod
    def from_columns(
        cls,
        name: str,
        values: Mapping[str, Any],
        strings: Strings,
        configs: Table | None = None,
        rows: int | None = None,
    ) -> Table:
        """From lists or arrays; columns that are not given are 0, text columns may be given as str.

        Raises:
            ResultError: an unknown column, or values that do not fit its type.
        """
        unknown = set(values) - set(schema()[name])
        if unknown:
            raise ResultError(f"table {name} has no column {sorted(unknown)[0]!r}")
        count = rows if rows is not None else max((len(v) for v in values.values()), default=0)
        columns: dict[str, Array] = {}
        for column in schema()[name].values():
            given = values.get(column.name)
            if given is None:
                # Zeros take no memory until they are written to.
                is_float = column.dtype == "float64"
                columns[column.name] = np.full(count, np.nan) if is_float else np.zeros(count, column.dtype)
                continue
            if column.is_text and len(given) and isinstance(given[0], str):
                given = [strings.code(s) for s in given]
            try:
                array = np.asarray(given)
                if array.dtype.kind in "iuf" and column.dtype != "float64" and len(array):
                    limits = np.iinfo(column.dtype)
                    if array.min() < limits.min or array.max() > limits.max:
                        raise OverflowError(f"{array.min()}..{array.max()}")
                columns[column.name] = array.astype(column.dtype)
            except (OverflowError, ValueError, TypeError) as e:
                raise ResultError(f"{name}.{column.name}: values do not fit {column.dtype} ({e})") from None
            if len(columns[column.name]) != count:
                raise ResultError(f"{name}.{column.name}: {len(columns[column.name])} values for {count} rows")
        return cls(name, columns, strings, configs)

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self):,} rows x {len(self.all_columns)} columns>"

    @property
    def column_names(self) -> list[str]:
        """Stored columns, in order."""
        return list(self._schema)

    @property
    def all_columns(self) -> list[str]:
        """What ``[]`` answers to, and what a data frame has: stored columns, "duration", of kernels the launch configuration
        and the metrics of the run."""
        names = [*self._schema]
        names += ["duration"] * (self._derived("duration") is not None)
        if self.name == "kernels":
            names += [*(self.configs._schema if self.configs is not None else ()), *(self.counters or ())]
        return list(dict.fromkeys(names))

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        names = self.all_columns
        head = self.head(_IN_A_NOTEBOOK)
        values = [head[name] for name in names]
        texts = [v.dtype == object for v in values]
        rows = [[str(v[i])[:_NOTEBOOK_TEXT] for v in values] for i in range(len(head))]
        more = f" (the first {len(head)} are shown)" if len(head) < len(self) else ""
        title = f"{self.name}: {len(self):,} rows x {len(names)} columns{more}"
        return html_line(title, "font-weight:bold") + html_table(names, rows, texts)

    def __contains__(self, column: object) -> bool:
        return column in self._schema or self._derived(str(column)) is not None

    def codes(self, column: str) -> Array:
        """A column as it is stored; for text the uint32 string index, shape (rows,)."""
        if column not in self._schema:
            raise KeyError(f"{self.name} has no column {column!r}; it has {', '.join(self._schema)}")
        return self._columns[column]

    def __getitem__(self, column: str) -> Array:
        spec = self._schema.get(column)
        if spec is None:
            derived = self._derived(column)
            if derived is None:
                raise KeyError(f"{self.name} has no column {column!r}; it has {', '.join(self._schema)}")
            return derived()
        values = self._columns[column]
        return self.strings.array()[values] if spec.is_text else values

    def _derived(self, column: str) -> Callable[[], Array] | None:
        if column == "duration" and "start" in self._schema and "end" in self._schema:
            return lambda: self._columns["end"] - self._columns["start"]
        configs = self.configs
        if configs is not None and self.name == "kernels" and column in configs._schema:
            return lambda: configs._columns[column][self._columns["config"]]
        counters = self.counters
        if counters is not None and column in counters:
            return lambda: counters.of_kernels(self, column)
        return None

    def row(self, i: int) -> dict[str, Any]:
        """Row `i` as Python scalars, text decoded."""
        out: dict[str, Any] = {}
        for column in self._schema.values():
            value = self._columns[column.name][i]
            out[column.name] = self.strings[int(value)] if column.is_text else value.item()
        return out

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows as dicts, for small tables."""
        return (self.row(i) for i in range(len(self)))

    def where(self, mask: Array) -> Table:
        """The rows that `mask` (bool or integer index array) selects; each column when it is first asked for.

        Raises:
            IndexError: a mask of another length, or a row that is not there.
        """
        columns = selected(self._columns, self._schema, self._rows, mask)
        out = Table(self.name, columns, self.strings, self.configs)
        out.counters, out.stacks = self.counters, self.stacks
        return out

    def head(self, rows: int) -> Table:
        """The first rows, at most so many. Of a large saved run only they are read."""
        count = min(rows, self._rows)
        stored = self._columns
        first = stored.first if isinstance(stored, LazyColumns) else lambda name, n: stored[name][:n]
        out = Table(
            self.name, LazyColumns(self._schema, count, lambda name: first(name, count)), self.strings, self.configs
        )
        out.counters, out.stacks = self.counters, self.stacks
        return out

    def with_column(self, column: str, values: Callable[[Table], Array]) -> Table:
        """The same rows with other values in a stored column, which ``values(this table)`` gives when it is first asked for."""
        made = LazyColumns(
            self._schema, self._rows, lambda name: values(self) if name == column else self._columns[name].view()
        )
        out = Table(self.name, made, self.strings, self.configs)
        out.counters, out.stacks = self.counters, self.stacks
        return out

    def timed(self) -> Table:
        """The rows that have times: CUPTI may have none for a piece of GPU work, whose start and end are then 0."""
        end = self._columns["end"]
        return self if end.all() else self.where(end != 0)

    def sorted_by(self, column: str) -> Table:
        """Rows in ascending order of a stored column (stable)."""
        return self.where(np.argsort(self.codes(column), kind="stable"))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream of the table: text columns as dictionaries, everything else as stored."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self, columns: Iterable[str] | None = None) -> pa.Table:
        """A pyarrow Table of these columns (default: ``all_columns``); stored numbers share memory with this table, text is
        dictionary-encoded.

        Raises:
            KeyError: no such column.
        """
        import pyarrow as pa

        arrays, fields = [], []
        texts: Any = None
        for name in self.all_columns if columns is None else columns:
            spec = self.spec(name)
            if spec.is_text:
                texts = texts_to_arrow(self.strings) if texts is None else texts
                array = pa.DictionaryArray.from_arrays(pa.array(self.codes(name).astype(np.int32)), texts)
            else:
                array = pa.array(self[name])
            arrays.append(array)
            fields.append(pa.field(name, array.type, metadata={"unit": spec.unit, "doc": spec.doc}))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def spec(self, column: str) -> ColumnSchema:
        """What is said of a column, derived ones included."""
        if column in self._schema:
            return self._schema[column]
        if column == "duration":
            return ColumnSchema("duration", "int64", False, "ns", "end - start")
        if self.configs is not None and column in self.configs._schema:
            return self.configs._schema[column]
        return ColumnSchema(column, "float64", False, "", "metric")

    def to_pandas(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """A pandas DataFrame of these columns (default: ``all_columns``); text columns are categoricals.

        Raises:
            ResultError: pandas is not installed. KeyError: no such column.
        """
        pd = need("pandas", "pandas")
        data: dict[str, Any] = {}
        for name in self.all_columns if columns is None else columns:
            if self.spec(name).is_text:
                used, codes = renumbered(self.codes(name))
                data[name] = pd.Categorical.from_codes(codes, [self.strings[int(i)] for i in used])
            else:
                data[name] = self[name]
        return pd.DataFrame(data)

    def to_polars(self, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """A polars DataFrame of these columns (default: ``all_columns``); text columns are categoricals.

        Raises:
            ResultError: polars is not installed. KeyError: no such column.
        """
        pl = need("polars", "polars")
        return pl.from_arrow(self.to_arrow(columns))


def need(module: str, extra: str) -> Any:
    """Import an optional library, or say how to get it.

    Raises:
        ResultError: it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ResultError(f"{module} is needed for this: {e}", hint=f"pip install 'cuptiprof[{extra}]'") from None


def merge(parts: Sequence[Mapping[str, Table]]) -> dict[str, Table]:
    """Tables of several segments of one run as one set: strings and launch configurations renumbered, columns joined
    when they are first asked for."""
    if len(parts) == 1:
        return dict(parts[0])
    strings = Strings()
    out: dict[str, Table] = {}
    maps = [np.array([strings.code(s) for s in p["kernels"].strings], np.uint32) for p in parts]
    offsets = np.cumsum([0] + [len(p["launch_configs"]) for p in parts]).astype(np.uint32)
    for name, columns in schema().items():
        rows = sum(len(p[name]) for p in parts)

        def make(column: str, name: str = name, rows: int = rows) -> Array:
            spec = schema()[name][column]
            pieces = (p[name].codes(column) for p in parts)
            if spec.is_text:
                pieces = (map_[codes] for map_, codes in zip(maps, pieces, strict=True))
            elif name == "kernels" and column == "config":
                pieces = (codes + offset for offset, codes in zip(offsets, pieces, strict=False))
            return joined(pieces, rows, spec.dtype)

        out[name] = Table(name, LazyColumns(columns, rows, make), strings)
    out["kernels"].configs = out["launch_configs"]
    return out


def texts_to_arrow(strings: Sequence[str]) -> Any:
    """The strings as an Arrow array; half a surrogate pair, which UTF-8 does not have, is written out (\\ud800)."""
    import pyarrow as pa

    # Not by pa.array, which imports pandas if it is installed.
    encoded = [text.encode("utf-8", "backslashreplace") for text in strings]
    ends = np.cumsum([0, *map(len, encoded)])
    if ends[-1] > np.iinfo(np.int32).max:
        raise ResultError("the strings of the run take more than 2 GiB", hint="give regions fewer different names")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)
