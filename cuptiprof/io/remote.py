"""Files and folders elsewhere, by address: whatever fsspec opens (S3, Google Cloud Storage, Azure, HTTP, memory, ...).

A file is written here first and then sent as a whole, a run file by file with ``run.json`` as the last, so that what is there can be opened.
What is read is fetched first: a run that was opened does not need the network.
"""

from __future__ import annotations

import os
import posixpath
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.text.addresses import redacted, shown_path

_RUN_FILE = "run.json"
_MOST_FILES = 100_000
_DEEPEST = 6
"""folders within each other: those of the ranks of a job, of their tables, of the parts of these"""
_TRIES = 3
_HOW_TO_REPLACE = "choose another name, or replace it: -f on the command line, overwrite=True in Python"
_HINT = "the address, the network and the credentials: those of the package that opens such addresses, from its files or environment"


@dataclass(frozen=True)
class RemotePlace:
    """Attributes:
    files: fsspec's file system. key: what it calls the place. shown: for messages.
    """

    address: str
    files: Any
    key: str
    shown: str

    def inside(self, *names: str) -> str:
        return posixpath.join(self.key, *names)

    @property
    def name(self) -> str:
        """Of the file here; nothing in it leads anywhere."""
        key = self.key.partition("?")[0] if self.address.startswith("http") else self.key
        name = posixpath.basename(key.rstrip("/")).replace("\0", "_")[-100:]
        return name if name.strip(".") else "file"

    def refuse_file(self, *, overwrite: bool) -> None:
        with remote_errors(self.address, "write"):
            if self.files.isdir(self.key):
                raise ResultError(f"cannot write {self.shown}: it is a folder", hint="give the name of a file")
            if not overwrite and self.files.exists(self.key):
                raise ResultError(f"{self.shown} exists", hint=_HOW_TO_REPLACE)

    def refuse_folder(self, *, overwrite: bool) -> bool:
        """Whether there is a run."""
        with remote_errors(self.address, "write"):
            if not self.files.exists(self.key):
                return False
            if not self.files.exists(self.inside(_RUN_FILE)):
                raise ResultError(f"{self.shown} is not a saved run and is not replaced", hint="choose another name")
            if not overwrite:
                raise ResultError(f"{self.shown} exists", hint=_HOW_TO_REPLACE)
            return True


@contextmanager
def sent_file(address: str, *, overwrite: bool) -> Iterator[Path]:
    """A temporary file here that is sent to `address` when the block ends well.

    Raises:
        ResultError: it exists and `overwrite` is false, or it cannot be sent.
    """
    place = place_at(address)
    place.refuse_file(overwrite=overwrite)
    with _temporary_folder(place) as folder:
        local = folder / place.name
        local.touch()
        yield local
        place.refuse_file(overwrite=overwrite)
        with remote_errors(address, "write"):
            place.files.put_file(str(local), place.key)


@contextmanager
def sent_folder(address: str, *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder here whose files are sent when the block ends well; while a run is replaced there is none at `address`.

    Raises:
        ResultError: it exists and `overwrite` is false, or it cannot be sent.
    """
    place = place_at(address)
    place.refuse_folder(overwrite=overwrite)
    with _temporary_folder(place) as folder:
        local = folder / "run"
        local.mkdir()
        yield local
        is_there = place.refuse_folder(overwrite=overwrite)
        with remote_errors(address, "write"):
            if is_there:
                place.files.rm_file(place.inside(_RUN_FILE))  # from here on it is no run
                place.files.rm(place.key, recursive=True)
            files = sorted(file for file in local.rglob("*") if file.is_file())
            for file in sorted(files, key=lambda file: file == local / _RUN_FILE):
                place.files.put_file(str(file), place.inside(*file.relative_to(local).parts))


def check_address(address: str, *, overwrite: bool, is_folder: bool) -> None:
    """Say now what ``sent_file`` and ``sent_folder`` would say: also whether a file can be made (and taken away) there.

    Raises:
        ResultError: as there.
    """
    place = place_at(address)
    (place.refuse_folder if is_folder else place.refuse_file)(overwrite=overwrite)
    trial = posixpath.join(posixpath.dirname(place.key.rstrip("/")), f".cuptiprof-{secrets.token_hex(8)}")
    with remote_errors(address, "write"):
        place.files.pipe_file(trial, b"")
        place.files.rm_file(trial)


@contextmanager
def fetched(address: str) -> Iterator[Path]:
    """A copy here of the file or folder at `address`, as long as the block lasts. Errors of the block name the address.

    Raises:
        ResultError: there is nothing, or it cannot be fetched.
    """
    place = place_at(address)
    with _temporary_folder(place) as folder:
        local = folder / place.name
        with remote_errors(address, "open"):
            if place.files.isfile(place.key):
                place.files.get_file(place.key, str(local))
            elif place.files.isdir(place.key):
                _fetch_folder(place, local)
            else:
                raise ResultError(f"no such run or trace: {place.shown}")
        try:
            yield local
        except CuptiprofError as e:
            raise type(e)(
                e.message.replace(str(local), place.shown), hint=e.hint.replace(str(local), place.shown)
            ) from None


def _fetch_folder(place: RemotePlace, local: Path) -> None:
    """All files below it. A run that is replaced meanwhile is fetched again, which its ``run.json`` tells."""
    for _ in range(_TRIES):
        header = _header(place)
        try:
            _fetch_files(place, local)
        except FileNotFoundError:  # taken away after it was listed
            pass
        else:
            if header == _header(place):
                return
        shutil.rmtree(local, ignore_errors=True)
    raise ResultError(f"{place.shown} is replaced all the time: it changed {_TRIES} times while it was fetched")


def _fetch_files(place: RemotePlace, local: Path) -> None:
    keys = place.files.find(place.key, maxdepth=_DEEPEST)
    if len(keys) > _MOST_FILES:
        raise ResultError(
            f"{place.shown}: {len(keys):,} files are no run", hint="name the run, or the folder of the runs"
        )
    targets = [_inside(local, place, key) for key in keys]
    for key, target in zip(keys, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        place.files.get_file(key, str(target))


def _header(place: RemotePlace) -> bytes:
    key = place.inside(_RUN_FILE)
    return bytes(place.files.cat_file(key)) if place.files.isfile(key) else b""


def _inside(local: Path, place: RemotePlace, key: str) -> Path:
    """Where a file of a folder goes here.

    Raises:
        ResultError: its name leads out of the folder.
    """
    prefix = place.key.rstrip("/") + "/"
    parts = key.removeprefix(prefix).split("/")
    if not key.startswith(prefix) or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ResultError(f"{place.shown}: the name of a file leads out of the folder: {shown_path(key)}")
    return local.joinpath(*parts)


def place_at(address: str) -> RemotePlace:
    """
    Raises:
        ResultError: fsspec, or what it needs for such addresses, is not installed, or it knows none such.
    """
    shown = shown_path(address)
    scheme = address.partition("://")[0].split("::")[-1]
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ResultError(f"{shown}: addresses need fsspec", hint="pip install 'cuptiprof[remote]'") from None
    try:
        files, key = url_to_fs(address)
        files.invalidate_cache()  # of what was there when another looked
    except ImportError as e:
        raise ResultError(f"{shown}: {redacted(str(e), address)}", hint=f"pip install {_package(scheme)}") from None
    except Exception as e:
        known = "such as s3://, gs://, abfs://, https://, memory://"
        raise ResultError(
            f"{shown}: {redacted(str(e) or type(e).__name__, address)}", hint=f"addresses that fsspec opens, {known}"
        ) from None
    return RemotePlace(address, files, key, shown)


def _package(scheme: str) -> str:
    """The package that opens such addresses."""
    from fsspec.registry import known_implementations

    module = str(known_implementations.get(scheme, {}).get("class", "")).partition(".")[0]
    return {"fsspec": "aiohttp requests" if scheme.startswith("http") else f"'fsspec[{scheme}]'"}.get(
        module, module
    ) or "fsspec"


@contextmanager
def _temporary_folder(place: RemotePlace) -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="cuptiprof-", ignore_cleanup_errors=True)
    except OSError as e:
        raise ResultError(
            f"{place.shown} needs a file here for a while: {e.strerror}", hint="TMPDIR=folder with room"
        ) from None
    with folder as name:
        yield Path(os.path.realpath(name))


@contextmanager
def remote_errors(address: str, verb: str) -> Iterator[None]:
    """What a package of fsspec's says, in the one error tree: they raise whatever their network libraries do."""
    try:
        yield
    except ResultError:
        raise
    except Exception as e:
        if isinstance(e, FileNotFoundError) and verb == "open":
            raise ResultError(f"no such run or trace: {shown_path(address)}") from None
        why = " ".join(redacted(str(e), address).split())[:300] or type(e).__name__
        raise ResultError(f"cannot {verb} {shown_path(address)}: {why}", hint=f"check {_HINT}") from None
