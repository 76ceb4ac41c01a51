"""A folder of runs: one of each process of a program."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cuptiprof.errors import ResultError
from cuptiprof.io.files import HOW_TO_REPLACE, check_folder
from cuptiprof.text.addresses import is_address

RUN_FILE = "run.json"


def runs_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The saved runs in a folder, by name; none if it is not such a folder."""
    try:
        return sorted(f.parent for f in Path(folder).glob(f"*/{RUN_FILE}"))
    except OSError:
        return []


def make_folder_of_runs(path: str, *, overwrite: bool) -> None:
    """Make it, empty; what is there goes first, if it is a saved run or nothing but a folder of runs. At an address nothing is replaced.

    Raises:
        ResultError: it exists and is not to be replaced, or is something else, or cannot be made.
    """
    if is_address(path):
        check_folder(path, overwrite=False)
        return
    folder = Path(path)
    if os.path.lexists(folder):
        if not overwrite:
            raise ResultError(f"{path} exists", hint=HOW_TO_REPLACE)
        others = set(folder.iterdir()) - set(runs_in(folder)) if folder.is_dir() else {folder}
        if others and not (folder / RUN_FILE).is_file():
            raise ResultError(f"{path} is not a folder of saved runs and is not replaced", hint="choose another name")
        shutil.rmtree(folder)
    check_folder(path, overwrite=False)
    folder.mkdir()
