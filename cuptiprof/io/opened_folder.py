"""All files of a saved run, opened before any of them is read: what becomes of its folder afterwards does not matter."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

from cuptiprof.data.tables import schema
from cuptiprof.errors import ResultError
from cuptiprof.io.damaged import damaged
from cuptiprof.io.reopened import ReopenedFile
from cuptiprof.io.run_folder import RUN_FILE

MAX_TRIES = 100
"""A folder that is replaced while its files are opened (a few dozen system calls) may have lost some: then it is its successor's turn."""


class OpenedFolder:
    """The files of one folder.

    Attributes:
        path: that it had, for messages.
    """

    def __init__(self, path: Path) -> None:
        """
        Raises:
            ResultError: it is gone, cannot be opened, or is replaced all the time.
        """
        self.path = path
        for _ in range(MAX_TRIES):
            if self._open():
                return
        raise ResultError(f"{path} is replaced all the time: it changed {MAX_TRIES} times while it was opened")

    def _open(self) -> bool:
        """Whether the folder was in its place until all of its files were open; nobody takes any of them away before it is not."""
        self._parts: dict[str, list[ReopenedFile]] = {}
        self._errors: dict[str, OSError] = {}
        with damaged(self.path):
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._open_part("", RUN_FILE, folder)
            for name in (*schema(), "strings"):
                self._open_table(name, folder)
            if os.path.samestat(os.fstat(folder), os.stat(self.path)):
                return True
        except FileNotFoundError:  # nothing is in its place
            pass
        finally:
            os.close(folder)
        self.close()
        return False

    def _open_table(self, name: str, folder: int) -> None:
        try:
            with _directory(name, folder) as table:
                for rank in sorted(fnmatch.filter(os.listdir(table), "rank=*")):
                    with _directory(rank, table) as files:
                        for part in sorted(fnmatch.filter(os.listdir(files), "part-*.parquet")):
                            self._open_part(name, part, files)
        except FileNotFoundError:
            return  # whether it has to be there is known when run.json has been read
        except OSError as e:
            self._errors[name] = e

    def _open_part(self, name: str, part: str, folder: int) -> None:
        try:
            self._parts.setdefault(name, []).append(ReopenedFile(part, folder))
        except OSError as e:
            self._errors[name] = e

    def parts(self, table: str) -> list[ReopenedFile]:
        """The files of a table, in order; "" is run.json.

        Raises:
            OSError: one of them could not be opened.
        """
        if table in self._errors:
            raise self._errors[table]
        return self._parts.get(table, [])

    def close(self) -> None:
        """All files. Those of large tables are closed by who reads them."""
        for files in self._parts.values():
            for file in files:
                file.close()


@contextlib.contextmanager
def _directory(name: str, inside: int) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
