"""Databases that NVIDIA's profilers write, SQLite: those of Nsight Systems (``nsys export --type sqlite``) and of nvprof (``-o``)."""

from __future__ import annotations

import os
from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.errors import ResultError
from cuptiprof.io.sqlite.database import Database
from cuptiprof.io.sqlite.nsys import NsysTables
from cuptiprof.io.sqlite.nvprof import NvprofTables

_MAGIC = b"SQLite format 3\0"


def looks_like_database(path: Path) -> bool:
    """By its first bytes."""
    try:
        with path.open("rb") as f:
            return f.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def import_database(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a database of Nsight Systems or nvprof; which one it is, its tables say.

    Kernels, copies and sets carry the thread of their call and the innermost NVTX range open there at the call. Rows that make no sense are
    counted in ``losses["unknown_records"]``, and ``metadata["skipped_first"]`` names the first; work whose call is not in the file in
    ``losses["orphan_correlations"]``; tables that there is no place for, with their rows, in ``metadata["not_kept"]``.

    Raises:
        ResultError: unreadable, truncated, damaged, or the database of something else.
    """
    file = Path(path)
    with Database(file) as database:
        for kind in (NsysTables, NvprofTables):
            if kind.knows(database):
                return kind(database).result(file.name, progress)
        names = ", ".join(sorted(database.tables)[:5]) or "none"
    raise ResultError(
        f"{file}: a SQLite database, but none of Nsight Systems or nvprof (its tables: {names})",
        hint="nsys export --type sqlite report.nsys-rep writes one",
    )
