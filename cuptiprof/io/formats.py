"""Exports to other tools' formats, chosen by the file's suffix. A new format is one file and one line in FORMATS."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.errors import ResultError
from cuptiprof.io import chrome
from cuptiprof.io.files import replacing_file


@dataclass(frozen=True)
class Format:
    """One export format: its name, suffixes (the first is usual), and what writes it."""

    name: str
    suffixes: tuple[str, ...]
    write: Callable[[Result, Path, bool, Progress | None], None]
    doc: str


FORMATS = (Format("chrome", (".json", ".json.gz"), chrome.write, "Chrome/Perfetto trace as torch.profiler writes it"),)


def export(
    result: Result,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Write `result` to `path`; see :meth:`cuptiprof.Result.export`.

    Raises:
        ResultError: no such format, or the file cannot be written.
    """
    name = os.fspath(path)
    for f in FORMATS:
        if f.name == format or (format is None and name.endswith(f.suffixes)):
            with replacing_file(path) as temporary:
                f.write(result.timed(), temporary, name.endswith(".gz"), progress)
            return
    known = "; ".join(f"{f.name} ({', '.join(f.suffixes)})" for f in FORMATS)
    raise ResultError(f"cannot tell the format of {name!r}" if format is None else f"unknown format {format!r}",
                      hint=f"known formats: {known}")  # fmt: skip
