"""Exports to other tools' formats, chosen by the file's suffix. A new format is one file and one line in FORMATS."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.errors import ResultError
from cuptiprof.io import chrome, flame_files, memory_snapshot, memory_timeline, perfetto
from cuptiprof.io.files import replacing_file


@dataclass(frozen=True)
class Format:
    """One export format: its name, suffixes (the first is usual), and what writes it."""

    name: str
    suffixes: tuple[str, ...]
    write: Callable[[Result, Path, bool, Progress | None], None]
    doc: str


FORMATS = (  # the first whose suffix fits
    Format(
        "speedscope",
        (".speedscope.json", ".speedscope.json.gz"),
        flame_files.write_speedscope,
        "flame graph by Python stack",
    ),
    Format(
        "memory-timeline",
        (".memory.html",),
        memory_timeline.write_page,
        "allocated and reserved bytes over time, of PyTorch's allocator",
    ),
    Format("chrome", (".json", ".json.gz"), chrome.write, "Chrome/Perfetto trace as torch.profiler writes it"),
    Format("perfetto", (".pftrace", ".pftrace.gz"), perfetto.write, "Perfetto's own trace format"),
    Format(
        "memory-snapshot", (".pickle",), memory_snapshot.write_snapshot, "PyTorch's own, for pytorch.org/memory_viz"
    ),
    Format("collapsed", (".folded", ".folded.gz"), flame_files.write_collapsed, "collapsed stacks for flamegraph.pl"),
)

RUN_SUFFIX = ".cuptiprof"


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
        f"{name}: cuptiprof writes no {suffix} files",
        hint=f"a saved run is a folder, named with {RUN_SUFFIX} or without a suffix; other formats: {_known()}",
    )


def find_format(name: str, format: str | None) -> Format:
    """The export format that is called `format`, or if that is None, that a file's `name` stands for.

    Raises:
        ResultError: there is none.
    """
    for f in FORMATS:
        if f.name == format or (format is None and name.endswith(f.suffixes)):
            return f
    raise ResultError(f"cannot tell the format of {name!r}" if format is None else f"unknown format {format!r}",
                      hint=f"known formats: {_known()}")  # fmt: skip


def _known() -> str:
    return "; ".join(f"{f.name} ({', '.join(f.suffixes)})" for f in FORMATS)


def export(
    result: Result,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write `result` to `path`; see :meth:`cuptiprof.Result.export`.

    Raises:
        ResultError: no such format, it exists and `overwrite` is false, or it cannot be written.
    """
    name = os.fspath(path)
    chosen = find_format(name, format)
    with replacing_file(path, overwrite=overwrite) as temporary:
        chosen.write(result.timed(), temporary, name.endswith(".gz"), progress)
