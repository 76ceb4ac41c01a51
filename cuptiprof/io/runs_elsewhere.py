"""The folder of a job's runs at an address that fsspec opens: listed and read where it is."""

from __future__ import annotations

import posixpath
import threading
from typing import Any

from cuptiprof.errors import ResultError
from cuptiprof.io.remote import place_at, remote_errors
from cuptiprof.io.run_folder import RUN_FILE
from cuptiprof.text.addresses import shown_path

_MOST_RUNS = 1_000_000


def address_in(folder: str, name: str) -> str:
    """Address of a run in a folder that has one.

    Raises:
        ResultError: the folder's has a query, behind which no name can stand.
    """
    if "?" in folder or "#" in folder:
        raise ResultError(
            f"{shown_path(folder)}: a folder of runs has no ? and # in its address", hint="give the plain address"
        )
    return f"{folder.rstrip('/')}/{name}"


def has_header(address: str) -> bool:
    """Whether a run lies at an address.

    Raises:
        ResultError: that cannot be found out.
    """
    place = place_at(address)
    with remote_errors(address, "open"):
        return bool(place.files.exists(place.inside(RUN_FILE)))


class RunsElsewhere:
    """A folder of runs.

    Attributes:
        address: of it. files: fsspec's file system.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._place = place_at(address)
        self.files: Any = self._place.files
        self._listing = threading.Lock()
        self._parts: dict[tuple[str, str], list[str]] | None = None

    def is_folder(self) -> bool:
        """Whether anything is there."""
        with remote_errors(self.address, "open"):
            return bool(self.files.isdir(self._place.key))

    def is_run(self) -> bool:
        """Whether it is the run of one process."""
        with remote_errors(self.address, "open"):
            return bool(self.files.exists(self._place.inside(RUN_FILE)))

    def headers(self) -> dict[str, bytes]:
        """Name of each run, in order -> its ``run.json``.

        Raises:
            ResultError: the folder, or one of them, cannot be read.
        """
        with remote_errors(self.address, "open"):
            folders = [
                e["name"].rstrip("/") for e in self.files.ls(self._place.key, detail=True) if e["type"] == "directory"
            ]
            if len(folders) > _MOST_RUNS:
                raise ResultError(f"{self._place.shown}: {len(folders):,} folders are no job")
            keys = {posixpath.join(folder, RUN_FILE): posixpath.basename(folder) for folder in sorted(folders)}
            read = self.files.cat(list(keys), on_error="return") if keys else {}
            found = {}
            for key, name in keys.items():
                content = read[key] if isinstance(read, dict) else read
                if isinstance(content, FileNotFoundError):
                    continue
                if isinstance(content, Exception):
                    raise content
                found[name] = bytes(content)
            return found

    def parts(self, run: str, table: str) -> list[str]:
        """What the file system calls the Parquet files of a table; the whole folder is listed once."""
        with self._listing:
            if self._parts is None:
                self._parts = self._list()
        return self._parts.get((run, table), [])

    def _list(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        root = self._place.key.rstrip("/") + "/"
        with remote_errors(self.address, "open"):
            keys = sorted(self.files.find(self._place.key))
        for key in keys:
            pieces = str(key).removeprefix(root).split("/")
            if len(pieces) == 4 and pieces[2].startswith("rank=") and pieces[3].endswith(".parquet"):
                found.setdefault((pieces[0], pieces[1]), []).append(str(key))
        return found
