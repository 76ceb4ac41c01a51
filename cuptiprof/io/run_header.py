"""``run.json`` of a saved run: its format, metadata, losses and row counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec

from cuptiprof.data.checked import checked
from cuptiprof.errors import ResultError
from cuptiprof.io.opened_folder import OpenedFolder
from cuptiprof.io.run_folder import RUN_FILE

FORMAT = 2
"""2: launch configurations and strings are tables of their own, columns are read when asked for. 1: kernels carry them."""
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class RunHeader(msgspec.Struct):
    """``run.json``; `rows` counts those of every table that has any, of ``launch_configs`` and of ``strings``."""

    format: Annotated[int, msgspec.Meta(ge=1, le=FORMAT)]
    metadata: dict[str, Any]
    losses: dict[str, Count]
    rows: dict[str, Count]


def read_header(folder: OpenedFolder) -> RunHeader:
    """
    Raises:
        ResultError: there is none, it is damaged, or a newer cuptiprof made it.
    """
    try:
        (opened,) = folder.parts("")
        with opened:
            return parsed_header(str(folder.path), opened.read())
    except OSError as e:
        raise ResultError(f"{folder.path} is not a saved run: run.json: {e.strerror}") from None


def read_header_alone(folder: Path) -> RunHeader:
    """That of a run of which nothing else is looked at.

    Raises:
        ResultError: as ``read_header``.
    """
    try:
        return parsed_header(str(folder), (folder / RUN_FILE).read_bytes())
    except OSError as e:
        raise ResultError(f"{folder} is not a saved run: run.json: {e.strerror}") from None


def parsed_header(folder: str, content: bytes) -> RunHeader:
    """That of a run whose ``run.json`` was read.

    Raises:
        ResultError: it is damaged, or a newer cuptiprof made it.
    """
    file = f"{folder}/{RUN_FILE}"
    try:
        run = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as e:
        raise ResultError(f"{file}: damaged ({e})") from None
    if isinstance(run, dict) and isinstance(run.get("format"), int) and run["format"] > FORMAT:
        raise ResultError(
            f"{folder} has format {run['format']}; this cuptiprof reads up to {FORMAT}",
            hint="pip install -U cuptiprof",
        )
    return checked(run, RunHeader, f"{file}: not written by cuptiprof")


def write_header(folder: Path, header: RunHeader) -> None:
    text = json.dumps(msgspec.structs.asdict(header), indent=1, default=str)
    (folder / "run.json").write_text(text, encoding="utf-8")
