"""Writes a saved run, format 2: a folder of Parquet files, Hive-partitioned by rank, with ``run.json`` beside them.

    run.cuptiprof/run.json
    run.cuptiprof/kernels/rank=0/part-0.parquet
    run.cuptiprof/launch_configs/rank=0/part-0.parquet   ``config`` is the row, which kernels refer to
    run.cuptiprof/strings/rank=0/part-0.parquet          every string of the run, once

Every text column carries its texts, so DuckDB, Polars or Spark read the folder as it is. A million rows at a time are put together,
whatever the run's size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import ColumnSchema, Strings, Table, schema, texts_to_arrow
from cuptiprof.errors import ResultError
from cuptiprof.io.arrow_arrays import to_arrow
from cuptiprof.io.files import replacing_folder
from cuptiprof.io.run_columns import TEXTS
from cuptiprof.io.run_header import FORMAT, RunHeader, write_header
from cuptiprof.text.addresses import shown_path

ROWS_AT_ONCE = 1 << 20


def save_run(
    result: Result, path: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """See :meth:`cuptiprof.Result.save`."""
    import pyarrow as pa

    rank = int(result.metadata.get("rank", 0))
    names = [n for n in schema() if len(result.tables[n])]
    strings = Strings(result.kernels.strings)
    for text in (
        text
        for n in names
        if result.tables[n].strings is not result.kernels.strings
        for text in result.tables[n].strings
    ):
        strings.code(text)
    with replacing_folder(path, overwrite=overwrite) as folder:

        def new_file(name: str) -> Path:
            part = folder / name / f"rank={rank}"
            part.mkdir(parents=True)
            return part / "part-0.parquet"

        try:
            for i, name in enumerate(names):
                _write_table(new_file(name), result.tables[name])
                if progress is not None:
                    progress(i + 1, len(names))
            _write_strings(new_file("strings"), texts_to_arrow(strings))
        except pa.ArrowException as e:
            raise ResultError(f"cannot write {shown_path(path)}: {e}") from None
        rows = {n: len(result.tables[n]) for n in names} | {"strings": len(strings)}
        write_header(folder, RunHeader(FORMAT, result.metadata, dict(result.losses), rows))


def _write_table(file: Path, table: Table) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings = table.strings
    specs = dict(schema()[table.name])
    if table.name == "launch_configs":
        specs = {"config": schema()["kernels"]["config"], **specs}

    def arrow(spec: ColumnSchema, first: int, after: int) -> Any:
        if spec.name not in table.column_names:
            return to_arrow(np.arange(first, after, dtype=spec.dtype))
        values = table.codes(spec.name)[first:after]
        if not spec.is_text:
            return to_arrow(values)
        used, which = renumbered(values)
        texts = texts_to_arrow([strings[code] for code in used.tolist()])
        return pa.DictionaryArray.from_arrays(to_arrow(which.astype(np.int32)), texts)

    types = {name: arrow(spec, 0, 0).type for name, spec in specs.items()}
    fields = pa.schema(
        [pa.field(s.name, types[s.name], metadata={"unit": s.unit, "doc": s.doc}) for s in specs.values()]
    )
    with (
        file.open("wb") as f,  # a name that is not UTF-8 is nothing to Arrow
        pq.ParquetWriter(
            f,
            fields,
            compression="zstd",
            use_dictionary=[s.name for s in specs.values() if s.is_text],
            # Times, IDs and codes of neighbouring rows are close to each other: half the bytes, written in a third of the time.
            column_encoding={
                s.name: "DELTA_BINARY_PACKED" for s in specs.values() if not s.is_text and s.dtype != "float64"
            },
        ) as writer,
    ):
        for first in range(0, len(table), ROWS_AT_ONCE):
            after = min(first + ROWS_AT_ONCE, len(table))
            part = pa.Table.from_arrays([arrow(spec, first, after) for spec in specs.values()], schema=fields)
            writer.write_table(part, row_group_size=ROWS_AT_ONCE)


def _write_strings(file: Path, texts: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with file.open("wb") as f:
        pq.write_table(pa.table({TEXTS.name: texts}), f, compression="zstd", use_dictionary=False)
