"""Where a rank's run goes in the folder of its job: a saved run of its own, so that ranks need not know of each other.

    job/rank-0.cuptiprof/run.json
    job/rank-0.cuptiprof/kernels/rank=0/part-0.parquet
    job/rank-1.cuptiprof/...

Each is put in place by one rename, or at an address sent with ``run.json`` as the last, so that it is there whole or not at all, whatever becomes of the
other ranks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuptiprof.data.result import Progress, Result
from cuptiprof.errors import ResultError
from cuptiprof.io.run_folder import RUN_FILE
from cuptiprof.io.run_writer import save_run
from cuptiprof.io.runs_elsewhere import address_in, has_header
from cuptiprof.text.addresses import absolute, is_address, shown_path


def place_of_rank(folder: str | os.PathLike[str], distributed: Mapping[str, Any]) -> Path | str:
    """The name, or the address, of a rank's run; a restarted process has another than the one before it.

    Args:
        distributed: ``metadata["distributed"]``, which says the rank.

    Raises:
        ResultError: it says none, or `folder` is a saved run itself, or cannot be made.
    """
    rank, restart = distributed.get("rank"), distributed.get("restart", 0)
    if not isinstance(rank, int) or rank < 0:
        raise ResultError(
            "this run is of no job: neither a launcher nor torch.distributed said which rank the process is",
            hint="start it with torchrun, mpirun or srun; save() saves the run of one process",
        )
    name = f"rank-{rank}-restart-{restart}.cuptiprof" if restart else f"rank-{rank}.cuptiprof"
    if is_address(folder):
        if has_header(os.fspath(folder)):
            raise _is_a_run(folder)
        return address_in(os.fspath(folder), name)
    job = Path(absolute(folder))
    try:
        job.mkdir(exist_ok=True)  # of several ranks one makes it
    except FileExistsError:
        raise ResultError(f"{folder} is a file, no folder for the runs of a job", hint="choose another name") from None
    except OSError as e:
        raise ResultError(f"cannot make {folder}: {e.strerror}", hint="make the folder that it lies in first") from None
    if (job / RUN_FILE).exists():
        raise _is_a_run(folder)
    return job / name


def _is_a_run(folder: str | os.PathLike[str]) -> ResultError:
    return ResultError(
        f"{shown_path(folder)} is a saved run, no folder for the runs of a job", hint="choose another name"
    )


def refuse_second(place: Path | str, *, overwrite: bool) -> None:
    """
    Raises:
        ResultError: the rank has a run there, which is not to be replaced.
    """
    if overwrite:
        return
    if has_header(place) if isinstance(place, str) else os.path.lexists(place):
        folder, name = os.path.split(place)
        raise ResultError(
            f"{shown_path(folder)} has a run of this rank: {name}",
            hint="each run of a job needs a folder of its own; or replace this rank's: -f on the command line, overwrite=True in Python",
        )


def save_rank(
    result: Result, folder: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
) -> Path | str:
    """See :meth:`cuptiprof.Result.save_rank`."""
    distributed = result.metadata.get("distributed")
    place = place_of_rank(folder, distributed if isinstance(distributed, dict) else {})
    refuse_second(place, overwrite=overwrite)
    save_run(result, place, overwrite=overwrite, progress=progress)
    return place
