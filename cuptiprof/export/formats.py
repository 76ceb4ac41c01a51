"""Exports to other tools' formats, chosen by the file's suffix. A new format is one file and one line in FORMATS."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuptiprof.analysis.trees.flame import STACKS_BY, StackBy, usual_stacks
from cuptiprof.data.activities import ALLOCATOR, DEFAULT
from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import schema
from cuptiprof.errors import ResultError
from cuptiprof.export import chrome, flame_files, hatchet, memory_timeline, perfetto, pprof, snapshot_file, table_files
from cuptiprof.export.databases.nsys_file import write_nsys
from cuptiprof.export.databases.nvprof_file import write_nvprof
from cuptiprof.io.files import replacing_file
from cuptiprof.page import PageRun, run_name, write_page
from cuptiprof.text.addresses import shown_path

RUN_SUFFIX = ".cuptiprof"


@dataclass(frozen=True)
class Format:
    """One export format: its name, suffixes (the first is usual), and what writes it.

    Attributes:
        write: of a result, a file, whether to compress, and a progress callback; ``write_by`` also of what stacks are of,
            ``write_table`` of which table. One of the three.
        activity: that a session must collect for it, which it does only when it is asked to; "": none.
        host_samples: whether samples of the host, put beside the run, are in it.
        launch_counters: whether counters of launches and regions have a place in it, or are of no matter to it.
    """

    name: str
    suffixes: tuple[str, ...]
    write: Callable[[Result, Path, bool, Progress | None], None] | None
    doc: str
    write_by: Callable[[Result, Path, bool, Progress | None, StackBy], None] | None = None
    write_table: Callable[[Result, Path, bool, Progress | None, str], None] | None = None
    activity: str = ""
    launch_counters: bool = True
    host_samples: bool = False

    def left_out(self, result: Result) -> str:
        """What of a run is not in a file of this format although a user may look for it there; "": nothing."""
        measured = result.metric_ranges.codes("kind")
        if self.launch_counters or not len(measured) or (measured == SAMPLE).all():
            return ""
        return f"{self.name} has no place for counters of launches: a saved run ({RUN_SUFFIX}) keeps them"


def _write_html(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    del compress, progress
    write_page([PageRun(run_name(result), result)], path)


FORMATS = (  # the first whose suffix fits
    Format(
        "speedscope",
        (".speedscope.json", ".speedscope.json.gz"),
        None,
        "flame graph by Python stack, region, module or operator",
        flame_files.write_speedscope,
    ),
    Format(
        "hatchet",
        (".hatchet.json", ".hatchet.json.gz"),
        hatchet.write_literal,
        "tree with times and counters, for Hatchet",
    ),
    Format(
        "memory-timeline",
        (".memory.html",),
        memory_timeline.write_page,
        "allocated and reserved bytes over time, of PyTorch's allocator",
        activity=ALLOCATOR,
    ),
    Format(
        "html",
        (".html",),
        _write_html,
        "the run as one page: tables, timeline, advice; opens in any browser",
        host_samples=True,
    ),
    Format(
        "chrome",
        (".json", ".json.gz"),
        chrome.write,
        "Chrome/Perfetto trace as torch.profiler writes it",
        host_samples=True,
    ),
    Format("perfetto", (".pftrace", ".pftrace.gz"), perfetto.write, "Perfetto's own trace format", host_samples=True),
    Format(
        "nsys-sqlite",
        (".sqlite",),
        write_nsys,
        "database of Nsight Systems, for nsys stats and scripts that read such",
        launch_counters=False,
    ),
    Format(
        "nvprof-sqlite",
        (".nvprof", ".nvvp"),
        write_nvprof,
        "database of nvprof, for the Visual Profiler and PyTorch's load_nvprof",
        launch_counters=False,
    ),
    Format(
        "parquet", (".parquet",), None, "a table, for pandas, Polars, DuckDB", write_table=table_files.write_parquet
    ),
    Format("arrow", (".arrow", ".feather"), None, "a table, Arrow's IPC file", write_table=table_files.write_arrow),
    Format("csv", (".csv", ".csv.gz"), None, "a table, for spreadsheets", write_table=table_files.write_csv),
    Format(
        "memory-snapshot",
        (".pickle",),
        snapshot_file.write_snapshot,
        "PyTorch's own, for pytorch.org/memory_viz",
        activity=ALLOCATOR,
    ),
    Format(
        "collapsed", (".folded", ".folded.gz"), None, "collapsed stacks for flamegraph.pl", flame_files.write_collapsed
    ),
    Format("pprof", (".pb.gz", ".pb"), None, "profile for pprof", pprof.write_pprof),
)


def format_of(name: str) -> Format | None:
    """The export format that a name's suffix stands for; None: it is that of a saved run, which has ``.cuptiprof`` or none.

    Raises:
        ResultError: nothing here is written under such a suffix.
    """
    for f in FORMATS:
        if name.endswith(f.suffixes):
            return f
    suffix = os.path.splitext(name)[1]
    if suffix == RUN_SUFFIX or not re.fullmatch(r"\.[A-Za-z][\w-]*", suffix):
        return None
    raise ResultError(
        f"{shown_path(name)}: cuptiprof writes no {suffix} files",
        hint=f"a saved run is a folder, named with {RUN_SUFFIX} or without a suffix; other formats: {_known()}",
    )


def check_activities(format: Format | None, activities: str | None) -> None:
    """Whether a session that collects these (comma-separated; None: the usual ones) has what a format is made of.

    Raises:
        ResultError: not.
    """
    collected = activities.split(",") if activities else DEFAULT
    if format is not None and format.activity and format.activity not in collected:
        raise ResultError(
            f"{format.name} is made of what the activity {format.activity!r} collects, which is not asked for",
            hint=f"--activities {','.join([*collected, format.activity])}",
        )


def find_format(name: str, format: str | None) -> Format:
    """The export format that is called `format`, or if that is None, that a file's `name` stands for.

    Raises:
        ResultError: there is none.
    """
    for f in FORMATS:
        if f.name == format or (format is None and name.endswith(f.suffixes)):
            return f
    raise ResultError(f"cannot tell the format of {shown_path(name)}" if format is None else f"unknown format {format!r}",
                      hint=f"known formats: {_known()}")  # fmt: skip


def _known() -> str:
    return "; ".join(f"{f.name} ({', '.join(f.suffixes)})" for f in FORMATS)


def export(
    result: Result,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    by: StackBy | None = None,
    table: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write `result` to `path`; see :meth:`cuptiprof.Result.export`.

    Raises:
        ResultError: no such format, one without stacks or of no single table although `by` or `table` is given, no such table, it exists and `overwrite` is false, or it cannot be written.
    """
    name = os.fspath(path)
    chosen = find_format(name, format)
    check_options(chosen, by, table)
    with replacing_file(path, overwrite=overwrite) as temporary:
        timed, compress = result.timed(), name.endswith(".gz")
        if chosen.write is not None:
            chosen.write(timed, temporary, compress, progress)
        if chosen.write_by is not None:
            chosen.write_by(timed, temporary, compress, progress, by or usual_stacks(timed))
        if chosen.write_table is not None:
            chosen.write_table(result, temporary, compress, progress, table or table_files.USUAL)


def check_options(chosen: Format, by: str | None, table: str | None) -> None:
    """Whether a format has stacks of that kind and holds such a table; None says nothing.

    Raises:
        ResultError: not.
    """
    if by is not None and chosen.write_by is None:
        having = ", ".join(f.name for f in FORMATS if f.write_by is not None)
        raise ResultError(f"{chosen.name} has no stacks to choose", hint=f"formats that have: {having}")
    if by is not None and by not in STACKS_BY:
        raise ResultError(f"unknown stacks {by!r}", hint=f"one of: {', '.join(STACKS_BY)}")
    if table is not None and chosen.write_table is None:
        having = ", ".join(f.name for f in FORMATS if f.write_table is not None)
        raise ResultError(f"{chosen.name} has no table to choose", hint=f"formats of one table: {having}")
    if table is not None and table not in schema():
        raise ResultError(f"no table {table!r}", hint=f"one of: {', '.join(schema())}")
