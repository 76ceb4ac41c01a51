"""A database as ``nsys export --type sqlite`` writes it, for ``nsys stats`` and what else reads such files."""

from __future__ import annotations

from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.export.databases.database_writer import new_database
from cuptiprof.export.databases.nsys_ranges import NsysRanges
from cuptiprof.export.databases.nsys_run import NsysRun
from cuptiprof.export.databases.nsys_schema import ENUMS
from cuptiprof.export.databases.nsys_target import add_target
from cuptiprof.export.databases.nsys_work import add_work


def write_nsys(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Times count from the first of the run, whose Unix time is in ``TARGET_INFO_SESSION_START_TIME``."""
    del compress
    with new_database(path) as database:
        for table, rows in ENUMS.items():
            database.create(table, "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT")
            names, labels = zip(*rows.values(), strict=True)
            database.add(table, len(rows), {"id": list(rows), "name": names, "label": labels})
        run = NsysRun(result, database)
        steps = (add_target, add_work, lambda run: NsysRanges(run).add(), NsysRun.finish)
        for done, add in enumerate(steps):
            add(run)
            if progress is not None:
                progress(done + 1, len(steps))
