"""Opening saved runs (format 2: docs/files.md; format 1), traces and spill folders."""

from __future__ import annotations

import os
from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings, Table, schema
from cuptiprof.errors import ResultError
from cuptiprof.io import run_format1
from cuptiprof.io.memory_snapshot import import_snapshot, looks_like_snapshot
from cuptiprof.io.opened_folder import OpenedFolder
from cuptiprof.io.remote import fetched
from cuptiprof.io.run_columns import ParquetTable, lazy_table, read_configs, read_strings
from cuptiprof.io.run_folder import runs_in
from cuptiprof.io.run_header import read_header
from cuptiprof.io.sqlite import import_database, looks_like_database
from cuptiprof.io.trace_file import looks_like_trace
from cuptiprof.text.addresses import is_address, local_path


def open_run(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a saved run, a torch.profiler trace (JSON, plain, gzip or zstd), a database of Nsight Systems or nvprof (SQLite),
    a snapshot of PyTorch's allocator (pickle), or the spill folder of a killed process; by path, or by an address that fsspec opens (``s3://bucket/run``).

    All files are opened before any is read: of a run that is replaced meanwhile the result is the old one, or the new one.

    Raises:
        ResultError: there is no such file, it is damaged, or a newer cuptiprof made it.
    """
    if is_address(path):
        with fetched(os.fspath(path)) as copy:
            return open_run(copy, progress)
    file = Path(local_path(path))
    try:
        exists = file.exists()
    except (OSError, ValueError) as e:  # too long, or not a file name at all
        raise ResultError(f"cannot open {str(path)[:200]!r}: {getattr(e, 'strerror', None) or e}") from None
    if not exists:
        raise ResultError(f"no such run or trace: {file}")
    if not file.is_dir():
        if looks_like_trace(file):
            from cuptiprof.io.kineto import import_trace

            return import_trace(file, progress)
        if looks_like_snapshot(file):
            return import_snapshot(file, progress)
        if looks_like_database(file):
            return import_database(file, progress)
        raise ResultError(
            f"{file} is neither a saved run (a folder) nor a torch.profiler trace (JSON, plain, gzip or zstd), "
            "nor a database of Nsight Systems or nvprof (SQLite), nor a snapshot of PyTorch's allocator (pickle)"
        )
    if not (file / "run.json").exists():
        from cuptiprof.io.spill_open import find_spill, open_spill

        if spilled := find_spill(file):
            return open_spill(spilled, progress)
        if runs := runs_in(file):
            raise ResultError(
                f"{file} holds {len(runs)} runs, one of each process",
                hint=f"open one of them, such as {runs[0]}; `cuptiprof report {file}` shows them all",
            )
        if traces := traces_in(file):
            raise ResultError(
                f"{file} is no saved run, but holds {len(traces)} traces",
                hint=f"open one of them, such as {traces[0]}; `cuptiprof report {file}` shows them all",
            )
    return _read_run(OpenedFolder(file), progress)


_TRACES = (".json", ".json.gz", ".json.zst")
_SPILL_FILE = "spill.json"  # of what a killed process left


def traces_in(folder: str | os.PathLike[str]) -> list[Path]:
    """Files of a folder that are called as traces are, or are databases, by name; none of the folder of a killed process."""
    try:
        files = sorted(file for file in Path(folder).iterdir() if file.is_file())
    except OSError:  # no folder, or one that nobody may read
        return []
    if any(file.name == _SPILL_FILE for file in files):
        return []
    return [file for file in files if file.name.endswith(_TRACES) or looks_like_database(file)]


def _read_run(folder: OpenedFolder, progress: Progress | None) -> Result:
    run = read_header(folder)
    tables: dict[str, Table] = {}
    # Kernels are checked against the configurations that they refer to.
    names = sorted((n for n in schema() if n in run.rows), key=lambda name: name != "launch_configs")
    strings = read_strings(folder, run.rows.get("strings", 0)) if run.format > 1 else Strings()
    for i, name in enumerate(names):
        part = ParquetTable(folder, name, run.rows[name])
        if run.format == 1:
            tables.update(run_format1.read_table(part, name, strings))
        elif name == "launch_configs":
            tables[name] = read_configs(part, strings)
        elif name == "kernels":
            configs = tables.setdefault("launch_configs", Table.empty("launch_configs", strings))
            tables[name] = lazy_table(part, name, strings, configs)
        else:
            tables[name] = lazy_table(part, name, strings, None)
        if progress is not None:
            progress(i + 1, len(names))
    return Result(tables, run.metadata, run.losses)
