"""A database as ``nvprof -o`` writes it, for the Visual Profiler, PyTorch's ``load_nvprof`` and what else reads such files."""

from __future__ import annotations

from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.export.databases.database_writer import new_database
from cuptiprof.export.databases.nvprof_calls import add_calls
from cuptiprof.export.databases.nvprof_markers import NvprofMarkers
from cuptiprof.export.databases.nvprof_run import NvprofRun
from cuptiprof.export.databases.nvprof_schema import OWN, VERSION
from cuptiprof.export.databases.nvprof_work import add_work
from cuptiprof.export.databases.own_facts import own_facts


def write_nvprof(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Times are Unix times in ns, where the run knows them."""
    del compress
    with new_database(path) as database:
        run = NvprofRun(result, database)
        run.add("Version", 1, {"version": VERSION})
        facts = own_facts(result)
        run.add(OWN, len(facts), {"name": list(facts), "value": list(facts.values())})
        steps = (add_work, add_calls, lambda run: NvprofMarkers(run).add(), NvprofRun.finish)
        for done, add in enumerate(steps):
            add(run)
            if progress is not None:
                progress(done + 1, len(steps))
