"""The dump of PyTorch's own flight recorder of collectives, written beside a snapshot where torch has one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cuptiprof.job.launcher import process_group

_SUFFIX = ".collectives"
_NAME = "nccl_trace_rank_"


def dump_beside(snapshot: Path) -> Path | None:
    """Write ``SNAPSHOT.collectives/nccl_trace_rank_RANK``, which ``cuptiprof.io.collective_dump`` and torch's ``fr_trace`` read.

    Returns:
        The file; None: the program has no process group, its torch no such recorder, or it is off (``TORCH_FR_BUFFER_SIZE``, before 2.9
        ``TORCH_NCCL_TRACE_BUFFER_SIZE``), so that nothing was recorded.

    Raises:
        OSError: it cannot be written.
    """
    place = process_group()
    c10d = sys.modules.get("torch._C._distributed_c10d")  # not imported: what torch did not load is not loaded for it
    dump = getattr(c10d, "_dump_fr_trace", None) or getattr(c10d, "_dump_nccl_trace", None)
    if not place or dump is None:
        return None
    data = dump()
    if b"collective_seq_id" not in data:
        return None
    folder = dumps_of(snapshot)
    folder.mkdir(exist_ok=True)
    path = folder / f"{_NAME}{place['rank']}"
    path.write_bytes(data)
    return path


def dumps_of(snapshot: Path) -> Path:
    """Where the dump beside a snapshot lies."""
    return snapshot.with_suffix(_SUFFIX)


def remove_beside(snapshot: Path) -> None:
    """The snapshot goes."""
    shutil.rmtree(dumps_of(snapshot), ignore_errors=True)
