"""Run folders of format 1 (before launch configurations were a table of their own): every kernel carries its launch configuration, and there is no list of strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuptiprof.data.lazy_columns import Array
from cuptiprof.data.tables import Strings, Table, schema
from cuptiprof.io.run_columns import ParquetTable

LATER = {
    "memory_pools": ("region", "region_instance", "thread"),
    "memory": ("region", "region_instance", "thread"),
}
"""Columns that came after format 1 and are not sparse: what they tell was not asked."""


def read_table(file: ParquetTable, name: str, strings: Strings) -> dict[str, Table]:
    """A table with all its columns, and for kernels their configurations; texts are added to `strings`.

    Raises:
        ResultError: damaged.
    """
    columns: dict[str, Array] = {}
    out: dict[str, Table] = {}
    for column, spec in schema()[name].items():
        if name == "kernels" and column == "config":
            continue
        if column in LATER.get(name, ()):
            columns[column] = np.zeros(file.rows, spec.dtype)  # 0 is the empty string
            continue
        file.require(spec)
        columns[column] = file.column(spec, strings.code if spec.is_text else None)
    if name == "kernels":
        out["launch_configs"], columns["config"] = _configs(file, strings)
    file.close()
    out[name] = Table(name, columns, strings, out.get("launch_configs"))
    return out


def _configs(file: ParquetTable, strings: Strings) -> tuple[Table, Array]:
    """The distinct launch configurations in order of appearance, and each kernel's row among them.

    Column by column: what the columns so far tell apart is told apart further by the next one. Most are of one value.
    """
    key = np.zeros(file.rows, np.int64)
    columns: dict[str, Array] = {}
    for column, spec in schema()["launch_configs"].items():
        file.require(spec)
        values = columns[column] = file.column(spec)
        if not len(values) or (values == values[0]).all():
            columns[column] = values[:1]  # of a column of one value no more is kept
            continue
        code = _in_order_of_appearance(values)
        key = _in_order_of_appearance(key * (int(code.max()) + 1) + code)
    highest = np.maximum.accumulate(key)
    first = np.flatnonzero(np.r_[True, highest[1:] > highest[:-1]][: len(key)])
    configs = {name: v[first] if len(v) > 1 else np.repeat(v, len(first)) for name, v in columns.items()}
    return Table("launch_configs", configs, strings), key.astype(np.uint32)


def _in_order_of_appearance(values: Array) -> npt.NDArray[np.int64]:
    """Each value's number, 0, 1, 2, ... as they first appear; by hashing, where sorting would take ten times as long."""
    import pyarrow as pa

    numbers: Array = pa.array(values).dictionary_encode().indices.to_numpy()
    return numbers.astype(np.int64)
