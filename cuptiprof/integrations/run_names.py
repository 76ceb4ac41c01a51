"""Where the runs of a training framework are saved: a folder, in it one run for each rank, stage and cycle."""

from __future__ import annotations

import os
import re
from itertools import count

from cuptiprof.cli.destination import Destination
from cuptiprof.errors import ResultError
from cuptiprof.export.formats import RUN_SUFFIX
from cuptiprof.io.files import check_folder


def local_folder(folder: str | os.PathLike[str]) -> str:
    """`folder` as it is on this machine, made if it is not there: said before there is a run that cannot be saved in it.

    Raises:
        ResultError: it is an address, or cannot be made or written.
    """
    text = os.fspath(folder)
    if "://" in text:
        raise ResultError(f"runs are saved in folders, not at {text}", hint="name a folder of this machine")
    path = os.path.abspath(text)  # the program may change its folder
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise ResultError(f"cannot make {path}: {e.strerror}") from None
    check_folder(_free_place(path, "check"), overwrite=False)
    return path


def run_place(folder: str, name: str, rank: int, ranks: int) -> Destination:
    """Where the next run goes: ``NAME.cuptiprof``, of several ranks ``NAME-rank0.cuptiprof``; with ``-2`` and so on where that is taken.

    Args:
        folder: what ``local_folder`` returned.
        name: of the stage; whatever a file name cannot have becomes ``_``.
    """
    stem = re.sub(r"[^\w.=+-]+", "_", name).strip("._") or "run"
    return Destination(_free_place(folder, f"{stem}-rank{rank}" if ranks > 1 else stem), None, overwrite=False)


def _free_place(folder: str, stem: str) -> str:
    paths = (os.path.join(folder, f"{stem}{f'-{i}' if i > 1 else ''}{RUN_SUFFIX}") for i in count(1))
    return next(path for path in paths if not os.path.lexists(path))
