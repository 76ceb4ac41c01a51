"""Which rank of which job a process is, as the launcher that started it says in the environment.

Sources: PyTorch, "torchrun (Elastic Launch)", Environment Variables; Open MPI, mpirun(1), "Environment variables"; MPICH's Hydra and Intel MPI
(PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS); Slurm, srun(1), OUTPUT ENVIRONMENT VARIABLES.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_LARGEST = 10**9
_ANCESTORS = 8


class Launcher(NamedTuple):
    """Names of variables; an empty one: it has none. `needs`: without that one the others are not a rank's."""

    name: str
    rank: str
    world_size: str
    local_rank: str
    local_world_size: str
    job: str = ""
    restart: str = ""
    needs: str = ""


# The innermost launcher first: torchrun runs under srun, one on each host.
LAUNCHERS = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"),
    Launcher("PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    # A batch script has a rank, 0, and the number of tasks, and is none of them: only a step of srun is.
    Launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_JOB_ID", needs="SLURM_STEP_ID"),
)  # fmt: skip


def place_in_job(environment: Mapping[str, str]) -> dict[str, Any]:
    """For ``metadata["distributed"]``: ``launcher``, ``rank``, and where they are known ``world_size``, ``local_rank``, ``local_world_size``, ``job``
    (the launcher's ID of it), ``restart`` (0: the first attempt). Empty: the process is no rank. Values that are no numbers are as if they were not there.
    """
    for launcher in LAUNCHERS:
        rank = _number(environment, launcher.rank)
        if rank is None or (launcher.needs and launcher.needs not in environment):
            continue
        size = _number(environment, launcher.world_size)
        if size is not None and rank >= size:
            continue
        numbers = {
            "rank": rank,
            "world_size": size,
            "local_rank": _number(environment, launcher.local_rank),
            "local_world_size": _number(environment, launcher.local_world_size),
            "restart": _number(environment, launcher.restart),
        }
        job = environment.get(launcher.job, "")[:200]
        known: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
        return {"launcher": launcher.name, **known, **({"job": job} if job not in ("", "none") else {})}
    return {}


def process_group() -> dict[str, Any]:
    """``backend``, ``rank`` and ``world_size`` of torch.distributed's default group; empty: the program has none now. torch is never imported here."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return {}
    return {
        "backend": str(distributed.get_backend()),
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
    }


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "") if name else ""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) and int(text) < _LARGEST else None


def ancestors(pid: int) -> list[dict[str, Any]]:
    """``pid`` and ``name`` of the process's parent, of its parent, and so on, at most 8; names only: command lines hold passwords."""
    found: list[dict[str, Any]] = []
    while len(found) < _ANCESTORS:
        status = _status(pid)
        pid = int(status["PPid"]) if status.get("PPid", "").isdecimal() else 0
        if pid < 1:
            break
        found.append({"pid": pid, "name": _status(pid).get("Name", "")})
    return found


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:  # it is gone, or of another user's namespace
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
