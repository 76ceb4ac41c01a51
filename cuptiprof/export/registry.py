"""Formats by the suffix of the file name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuptiprof.errors import ResultError

if TYPE_CHECKING:
    from cuptiprof.progress import Progress
    from cuptiprof.result import Result

Writer = Callable[["Result", Path, "Progress | None"], None]
"""Writes a result to a path, atomically, replacing what is there; raises OSError if the file system will not have it."""


@dataclass(frozen=True)
class Format:
    """One way to write a result: ``name`` for ``format=``, the file suffixes that mean it, and a line of help."""

    name: str
    suffixes: tuple[str, ...]
    help: str
    write: Writer


FORMATS: dict[str, Format] = {}


def register(name: str, *suffixes: str, help: str) -> Callable[[Writer], Writer]:
    """Decorator: the function writes format ``name``, which ``suffixes`` (".json.gz") stand for."""

    def add(write: Writer) -> Writer:
        taken = {suffix for known in FORMATS.values() for suffix in known.suffixes} & set(suffixes)
        if name in FORMATS or taken:
            raise ValueError(f"export format {name!r} or suffix {sorted(taken)} is registered already")
        FORMATS[name] = Format(name, suffixes, help, write)
        return write

    return add


def find_format(path: Path, format: str | None) -> Format:
    """The format called ``format``, or the one with the longest suffix that ``path`` ends in."""
    if format is not None:
        if format not in FORMATS:
            raise ResultError(f"unknown export format {format!r}", hint=f"Known formats: {_known()}.")
        return FORMATS[format]
    name = path.name.lower()
    matches = [
        (len(suffix), known)
        for known in FORMATS.values()
        for suffix in known.suffixes
        if name.endswith(suffix) and name != suffix
    ]
    if not matches:
        raise ResultError(
            f"cannot tell the format of {str(path)!r} from its suffix",
            hint=f"Use one of the suffixes of a known format, or name it with format=: {_known()}.",
        )
    return max(matches, key=lambda match: match[0])[1]


def _known() -> str:
    return "; ".join(f"{known.name} ({', '.join(known.suffixes)}: {known.help})" for known in FORMATS.values())
