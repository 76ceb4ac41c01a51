"""What ``keep="spill"`` leaves on disk, and how it becomes tables again.

    cuptiprof-spill-XXXX/spill.json            who made it: format, metadata
    cuptiprof-spill-XXXX/progress.json         launches and losses so far, rewritten in place while the session runs
    cuptiprof-spill-XXXX/000000/kernels.arrow  one folder a store, one Arrow IPC file a table
    cuptiprof-spill-XXXX/000000/strings.arrow  what the text columns index
    cuptiprof-spill-XXXX/000000/rows.json      rows of each table

A store is written beside its place and renamed, so what is there is whole even when the process was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.lazy_columns import Array, LazyColumns, joined
from cuptiprof.data.tables import Strings, Table, schema, texts_to_arrow
from cuptiprof.errors import ResultError
from cuptiprof.io.arrow_arrays import to_arrow, to_numpy
from cuptiprof.io.damaged import damaged

FORMAT = 1
PREFIX = "cuptiprof-spill-"
_PROGRESS_BYTES = 4096  # progress.json always has this length: a write in place leaves no rest of a longer one


class SpillFolder:
    """Stores written one after the other. One that is dropped takes its folder along, in the process that made it; a folder
    that the user named outlives a process that ends with its session open.
    """

    def __init__(self, parent: Any, header: Mapping[str, Any]) -> None:
        try:
            where = Path(os.path.abspath(parent)) if parent is not None else None
            if where is not None:
                where.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
            (self.path / "spill.json").write_text(json.dumps({"format": FORMAT, **header}, default=str))
        except (OSError, ValueError, TypeError) as e:
            why = getattr(e, "strerror", None) or e
            raise ResultError(f"cannot spill to {parent}: {why}", hint="choose another spill_dir=") from None
        self.segments = 0
        self._progress = b""
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())
        self._finalizer.atexit = parent is None

    def remove(self) -> None:
        """Its tables are in memory. Not left to the finalizer, which would swallow a Ctrl-C."""
        _remove_folder(self.path)
        self._finalizer.detach()

    def write(self, tables: Mapping[str, Table]) -> None:
        """One more store.

        Raises:
            OSError, pyarrow.ArrowException: the disk is full or gone; nothing of the store is left.
        """
        import pyarrow as pa

        place = self.path / f"{self.segments:06d}"
        part = place.with_suffix(".part")
        try:
            part.mkdir()
            rows = {n: len(t) for n, t in tables.items() if len(t) or n == "launch_configs"}
            for name in rows:
                table = tables[name]
                _write_arrow(part / f"{name}.arrow", {c: to_arrow(table.codes(c)) for c in table.column_names})
            _write_arrow(part / "strings.arrow", {"text": texts_to_arrow(tables["kernels"].strings)})
            (part / "rows.json").write_text(json.dumps(rows))
            part.rename(place)
        except (OSError, pa.ArrowException):
            _remove_folder(part)
            raise
        self.segments += 1

    def note_progress(self, progress: Mapping[str, Any]) -> None:
        """Launches and losses so far, for whoever opens the folder of a process that was killed."""
        data = json.dumps(progress).encode().ljust(_PROGRESS_BYTES)
        if data == self._progress:
            return
        handle = os.open(self.path / "progress.json", os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.pwrite(handle, data, 0)
        finally:
            os.close(handle)
        self._progress = data

    def read(self) -> list[dict[str, Table]]:
        """The tables of each store; columns are read from disk when asked for."""
        return [read_segment(self.path / f"{i:06d}", self) for i in range(self.segments)]


def read_segment(folder: Path, owner: object) -> dict[str, Table]:
    """The tables of one store. `owner` is kept alive by them.

    Raises:
        ResultError: damaged.
    """
    with damaged(folder):
        rows = json.loads((folder / "rows.json").read_text())
        texts = _read_arrow(folder / "strings.arrow").column("text")
        texts.validate(full=True)
        strings = Strings(texts.to_pylist())
        if not all(isinstance(text, str) for text in strings):
            raise ResultError(f"{folder / 'strings.arrow'}: it is not what it was when it was written")
        counts = {name: int(rows.get(name, 0)) for name in schema()}
        out = {
            name: _mapped(folder / f"{name}.arrow", name, counts, strings, owner)
            if name in rows
            else Table.empty(name, strings)
            for name in schema()
        }
    out["kernels"].configs = out["launch_configs"]
    return out


def rows_of(folder: Path) -> dict[str, int]:
    """Rows of each table of a store, for one that cannot be read; {}: unknown."""
    try:
        rows = json.loads((folder / "rows.json").read_text())
        return {name: int(n) for name, n in rows.items() if name != "launch_configs"}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write_arrow(file: Path, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa

    table = pa.table(dict(columns))
    with pa.OSFile(str(file), "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
        writer.write_table(table)


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has a copy of the object, not of the folder
        _remove_folder(path)


def _remove_folder(path: Path) -> None:
    """As much of it as can be. ``shutil.rmtree`` closes a descriptor twice when Ctrl-C comes in between, and raises that."""
    for folder, _, files in os.walk(path, topdown=False):
        for file in files:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, file))
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _read_arrow(file: Path) -> Any:
    """The file as an Arrow table whose buffers are as long as they must be; mapped, so that nothing is read yet."""
    import pyarrow as pa

    table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    table.validate()
    return table


def _mapped(file: Path, name: str, counts: Mapping[str, int], strings: Strings, owner: object) -> Table:
    """A table over its file, whose rows, columns, types and codes are checked: a store that is damaged is left out as a whole."""
    import pyarrow as pa

    columns = schema()[name]
    arrow = _read_arrow(file)
    types = {column: pa.from_numpy_dtype(np.dtype(spec.dtype)) for column, spec in columns.items()}
    found = {field.name: field.type for field in arrow.schema}
    if arrow.num_rows != counts[name] or found != types or any(column.null_count for column in arrow.columns):
        raise ResultError(f"{file}: it is not what it was when it was written")

    def make(column: str) -> Array:
        parts = [to_numpy(chunk, columns[column].dtype) for chunk in arrow.column(column).chunks]
        return parts[0] if len(parts) == 1 else joined(parts, arrow.num_rows, columns[column].dtype)

    mapped = LazyColumns(columns, arrow.num_rows, make, owner)
    for column, spec in columns.items():
        size = len(strings) if spec.is_text else counts["launch_configs"] if column == "config" else None
        if size is not None and arrow.num_rows and int(mapped[column].max()) >= size:
            raise ResultError(f"{file}: column {column}: {int(mapped[column].max())} of {size}")
    return Table(name, mapped, strings)
