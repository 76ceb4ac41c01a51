"""Where snapshots of the recorder go: a folder of saved runs, of which the newest are kept."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.flight_recorder.beside_dump import remove_beside

_NAME = re.compile(r"snapshot-\d{8}T\d{6}-p\d+-\d+(-[a-z0-9-]+)?\.cuptiprof")
_REASON = 40  # characters of it in a name


class SnapshotFiles:
    """Saved runs ``snapshot-TIME-pPID-NUMBER-REASON.cuptiprof`` in a folder, which is made.

    Args:
        most: how many of this process are kept; the oldest are removed.

    Raises:
        ResultError: the folder cannot be made.
    """

    def __init__(self, folder: str | os.PathLike[str], most: int) -> None:
        self.folder = Path(folder).absolute()
        self._most = most
        self._number = 0
        self._written: list[Path] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ResultError(f"{self.folder}: {e.strerror}", hint="recorder(folder=...)") from None

    def write(self, result: Result, reason: str) -> Path:
        """Whole or not at all: a run gets its name when it is complete.

        Raises:
            ResultError: it cannot be written.
        """
        self._number += 1
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        words = re.sub(r"[^a-z0-9]+", "-", reason.lower())[:_REASON].strip("-")
        name = f"snapshot-{stamp}-p{os.getpid()}-{self._number}{f'-{words}' if words else ''}.cuptiprof"
        path = self.folder / name
        result.metadata["reason"] = reason
        result.save(path)
        self._written.append(path)
        while len(self._written) > self._most:
            oldest = self._written.pop(0)
            shutil.rmtree(oldest, ignore_errors=True)
            remove_beside(oldest)
        return path


def snapshots_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The complete snapshots of all processes in a folder, oldest first."""
    found = [path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.name.split("-")[1], path.stat().st_mtime_ns))
