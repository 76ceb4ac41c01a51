"""Exports: a result written in other tools' formats, chosen by the suffix of the file name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cuptiprof.errors import ResultError
from cuptiprof.export import chrome
from cuptiprof.export.registry import FORMATS, Format, find_format, register

if TYPE_CHECKING:
    from cuptiprof.progress import Progress
    from cuptiprof.result import Result

__all__ = ["FORMATS", "Format", "chrome", "export", "find_format", "register"]


def export(
    result: Result, path: str | os.PathLike[str], format: str | None = None, progress: Progress | None = None
) -> Path:
    """Writes ``result`` to ``path`` and returns the path; the file appears only when it is complete.

    Args:
        format: name of a format in ``export.FORMATS``; None: by the suffix.
        progress: called with (events written, events in all).

    Raises:
        ResultError: unknown format or suffix, or the file cannot be written.
    """
    target = Path(path)
    chosen = find_format(target, format)
    try:
        chosen.write(result, target, progress)
    except OSError as error:
        raise ResultError(
            f"cannot write {str(target)!r}: {error.strerror or error}",
            hint="Nothing was left behind. Check that the folder exists, is writable and has room.",
        ) from error
    return target
