"""keep="spill": full stores go to disk as Arrow IPC files while the session runs."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.errors import ResultError
from cuptiprof.result import from_native
from cuptiprof.tables import Array, Strings, Table, need, schema


class Spill:
    """Takes full stores from the session on a thread of its own and writes one file per table and store."""

    def __init__(self, session: Any, folder: Any = None) -> None:
        need("pyarrow", "arrow")
        self._session = session
        try:
            parent = Path(folder) if folder is not None else None
            if parent is not None:
                parent.mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix="cuptiprof-spill-", dir=parent))
        except OSError as e:
            raise ResultError(f"cannot spill to {folder}: {e.strerror}", hint="choose another spill_dir=") from None
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.error: Exception | None = None
        self.lost_rows = 0
        self._segments = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="cuptiprof-spill", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while True:
            stopping = self._stop.is_set()
            store = self._session.next_segment(50)
            if store is None:
                if stopping:
                    return
                continue
            self._write(from_native(store.tables(), store.strings()))

    def _write(self, tables: Mapping[str, Table]) -> None:
        pa = need("pyarrow", "arrow")
        folder = self.folder / f"{self._segments:06d}"
        try:
            folder.mkdir()
            for name, table in tables.items():
                if len(table) == 0 and name != "launch_configs":
                    continue
                arrow = pa.table({c: pa.array(table.codes(c)) for c in table.column_names})
                with (
                    pa.OSFile(str(folder / f"{name}.arrow"), "wb") as f,
                    pa.ipc.new_file(f, arrow.schema) as writer,
                ):
                    writer.write_table(arrow)
            texts = pa.table({"text": pa.array(list(tables["kernels"].strings), pa.string())})
            with (
                pa.OSFile(str(folder / "strings.arrow"), "wb") as f,
                pa.ipc.new_file(f, texts.schema) as writer,
            ):
                writer.write_table(texts)
            self._segments += 1
        except (OSError, pa.ArrowException) as e:
            # The disk is full or gone: the program goes on, the loss is counted and the first reason kept.
            self.error = self.error or e
            self.lost_rows += sum(len(t) for n, t in tables.items() if n != "launch_configs")
            shutil.rmtree(folder, ignore_errors=True)

    def finish(self) -> list[dict[str, Table]]:
        """Wait for the last store and return the tables of each segment; columns are read from disk when asked for."""
        self._stop.set()
        self._thread.join()
        return [self._open(i) for i in range(self._segments)]

    def _open(self, segment: int) -> dict[str, Table]:
        pa = need("pyarrow", "arrow")
        folder = self.folder / f"{segment:06d}"
        with pa.memory_map(str(folder / "strings.arrow")) as f:
            strings = Strings(pa.ipc.open_file(f).read_all().column("text").to_pylist())
        out = {}
        for name in schema():
            file = folder / f"{name}.arrow"
            out[name] = Table(name, _Mapped(file, self), strings) if file.is_file() else Table.empty(name, strings)
        out["kernels"].configs = out["launch_configs"]
        return out


class _Mapped(Mapping[str, Array]):
    """Columns of one Arrow IPC file, mapped and not read until they are used. Keeps the spill folder alive."""

    def __init__(self, file: Path, owner: Spill) -> None:
        self._file = file
        self._owner = owner
        self._table: Any = None

    def _arrow(self) -> Any:
        if self._table is None:
            pa = need("pyarrow", "arrow")
            self._table = pa.ipc.open_file(pa.memory_map(str(self._file))).read_all()
        return self._table

    def __getitem__(self, column: str) -> Array:
        chunks = self._arrow().column(column).chunks
        arrays = [c.to_numpy(zero_copy_only=False) for c in chunks]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrow().column_names)

    def __len__(self) -> int:
        return len(self._arrow().column_names)
