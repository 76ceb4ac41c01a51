"""Saved runs: a folder of Parquet files, Hive-partitioned by rank, with ``run.json`` beside them.

    run.cuptiprof/run.json
    run.cuptiprof/kernels/rank=0/part-0.parquet

Kernels carry their launch configuration and every text column its text, so DuckDB, Polars or Spark read the folder as it
is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from cuptiprof.data.checked import checked
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings, Table, schema
from cuptiprof.errors import ResultError
from cuptiprof.io.files import identity, replacing_folder

FORMAT = 1
_TRIES = 50
_CONFIG_COLUMNS = list(schema()["launch_configs"])
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class RunHeader(msgspec.Struct):
    """``run.json``."""

    format: int
    metadata: dict[str, Any]
    losses: dict[str, Count]
    rows: dict[str, Count]


def save_run(
    result: Result, path: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """See :meth:`cuptiprof.Result.save`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rank = int(result.metadata.get("rank", 0))
    names = [n for n in schema() if n != "launch_configs" and len(result.tables[n])]
    with replacing_folder(path, overwrite=overwrite) as folder:
        for i, name in enumerate(names):
            table = result.tables[name].to_arrow()
            if name == "kernels":
                for column in _CONFIG_COLUMNS:
                    table = table.append_column(column, pa.array(result.kernels[column]))
            part = folder / name / f"rank={rank}"
            part.mkdir(parents=True)
            try:
                with (part / "part-0.parquet").open("wb") as f:  # a name that is not UTF-8 is nothing to Arrow
                    pq.write_table(table, f, compression="zstd")
            except pa.ArrowException as e:
                raise ResultError(f"cannot write {path}: {e}") from None
            if progress is not None:
                progress(i + 1, len(names))
        run = {
            "format": FORMAT,
            "metadata": result.metadata,
            "losses": dict(result.losses),
            "rows": {n: len(result.tables[n]) for n in names},
        }
        (folder / "run.json").write_text(json.dumps(run, indent=1, default=str), encoding="utf-8")


def open_run(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a saved run, a torch.profiler trace (``.json``, ``.json.gz``), or the spill folder of a killed process.

    A run that is replaced meanwhile is read again, so that no result is made of two.

    Raises:
        ResultError: there is no such file, it is damaged, or a newer cuptiprof made it.
    """
    file = Path(path)
    try:
        exists = file.exists()
    except (OSError, ValueError) as e:  # too long, or not a file name at all
        raise ResultError(f"cannot open {str(path)[:200]!r}: {getattr(e, 'strerror', None) or e}") from None
    if not exists:
        raise ResultError(f"no such run or trace: {file}")
    if not file.is_dir():
        if file.name.endswith((".json", ".json.gz")):
            from cuptiprof.io.kineto import import_trace

            return import_trace(file, progress)
        raise ResultError(f"{file} is neither a saved run (a folder) nor a torch.profiler trace (.json, .json.gz)")
    if not (file / "run.json").exists():
        from cuptiprof.io.spill_open import find_spill, open_spill

        if spilled := find_spill(file):
            return open_spill(spilled, progress)
    for _ in range(_TRIES):
        before = identity(file)
        try:
            result = _read_run(file, progress)
        except ResultError:
            if identity(file) == before:
                raise
            continue
        if identity(file) == before:
            return result
    raise ResultError(f"{file} is replaced all the time: it changed {_TRIES} times while it was read")


def _read_run(file: Path, progress: Progress | None) -> Result:
    run = _read_header(file)
    tables: dict[str, Table] = {}
    strings = Strings()
    names = [n for n in schema() if n in run.rows]
    for i, name in enumerate(names):
        tables.update(_read_table(file, name, strings, run.rows[name]))
        if progress is not None:
            progress(i + 1, len(names))
    return Result(tables, run.metadata, run.losses)


def _read_header(folder: Path) -> RunHeader:
    file = folder / "run.json"
    try:
        run = json.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise ResultError(f"{folder} is not a saved run: run.json: {e.strerror}") from None
    except (ValueError, RecursionError) as e:
        raise ResultError(f"{file}: damaged ({e})") from None
    if isinstance(run, dict) and isinstance(run.get("format"), int) and run["format"] > FORMAT:
        raise ResultError(
            f"{folder} has format {run['format']}; this cuptiprof reads up to {FORMAT}",
            hint="pip install -U cuptiprof",
        )
    return checked(run, RunHeader, f"{file}: not written by cuptiprof")


def _read_table(folder: Path, name: str, strings: Strings, rows: int) -> dict[str, Table]:
    import pyarrow as pa

    parts = sorted((folder / name).glob("rank=*/part-*.parquet"))
    if not parts:
        raise ResultError(f"{folder / name}: missing, though run.json counts {rows} rows")
    try:
        table = pa.concat_tables([_read_part(p) for p in parts])
    except (pa.ArrowException, OSError, ValueError) as e:
        raise ResultError(f"{folder / name}: damaged ({e})") from None
    if table.num_rows != rows:
        raise ResultError(f"{folder / name}: {table.num_rows} rows, but run.json counts {rows}")
    wanted = dict(schema()[name])
    columns: dict[str, Any] = {}
    for column in wanted.values():
        if column.name not in table.column_names:
            if name == "kernels" and column.name == "config":
                continue
            raise ResultError(f"{folder / name}: column {column.name} is missing")
        columns[column.name] = _values(table, column.name, column.dtype, column.is_text, strings, folder / name)
    out: dict[str, Table] = {}
    if name == "kernels":
        out["launch_configs"], columns["config"] = _configs(table, strings, folder / name)
    out[name] = Table(name, columns, strings, out.get("launch_configs"))
    return out


def _read_part(path: Path) -> Any:
    import pyarrow.parquet as pq

    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:  # a name that is not UTF-8 is nothing to Arrow
        with path.open("rb") as f:
            return pq.read_table(f)
    return pq.read_table(path, partitioning=None)


def _values(table: Any, name: str, dtype: str, is_text: bool, strings: Strings, where: Path) -> Any:
    import pyarrow as pa

    array = table.column(name).combine_chunks()
    try:
        if not is_text:
            return array.cast(pa.from_numpy_dtype(np.dtype(dtype))).to_numpy(zero_copy_only=False)
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
        codes = np.array([strings.code(s if s is not None else "") for s in array.dictionary.to_pylist()], np.uint32)
        indices = array.indices.to_numpy(zero_copy_only=False)
        return codes[indices] if len(codes) else np.zeros(len(indices), np.uint32)
    except (pa.ArrowException, TypeError, IndexError, ValueError) as e:
        raise ResultError(f"{where}: column {name}: {e}") from None


def _configs(table: Any, strings: Strings, where: Path) -> tuple[Table, Any]:
    """The distinct launch configurations, and each kernel's row among them."""
    specs = schema()["launch_configs"]
    missing = [c for c in specs if c not in table.column_names]
    if missing:
        raise ResultError(f"{where}: column {missing[0]} is missing")
    columns = {c: _values(table, c, s.dtype, False, strings, where) for c, s in specs.items()}
    stacked = np.stack([columns[c].astype(np.int64) for c in specs], axis=1)
    _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # numbered in order of appearance, as the collector does
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    configs = Table("launch_configs", {c: v[first[order]] for c, v in columns.items()}, strings)
    return configs, rank[inverse.reshape(-1)]
