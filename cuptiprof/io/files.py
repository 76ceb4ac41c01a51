"""Writing files so that a reader sees all of the new one or all of the old one; what has an address is sent there (remote.py)."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuptiprof.errors import ResultError
from cuptiprof.io.remote import check_address, sent_file, sent_folder
from cuptiprof.text.addresses import is_address, local_path, shown_path

_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h
_AT_FDCWD = -100


@contextmanager
def replacing_file(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well, and vanishes otherwise.

    A symbolic link stays one: what it points to is replaced. A device or a pipe is written to.

    Raises:
        ResultError: it exists and `overwrite` is false, or it cannot be written (no such folder, no permission, disk full).
    """
    if is_address(path):
        with sent_file(os.fspath(path), overwrite=overwrite) as local:
            yield local
        return
    target = _target(path)
    with _errors(path):
        _refuse_file(target, path, overwrite=overwrite)
        special = _is_special(target)
        beside = Path(tempfile.gettempdir(), target.name) if special else target
        temporary = Path(_temporary_name(beside))
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if special else 0o666))
    try:
        with _errors(path, hint="is the disk full?"):
            yield temporary
            if special:
                with temporary.open("rb") as f, target.open("wb") as out:
                    shutil.copyfileobj(f, out)
                return
            with temporary.open("rb") as f:
                os.fsync(f.fileno())
            if overwrite or not _link(temporary, target, path):
                temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends well, and vanishes otherwise.

    A symbolic link stays one: what it points to is replaced.

    Raises:
        ResultError: it exists and `overwrite` is false, or it cannot be written.
    """
    if is_address(path):
        with sent_folder(os.fspath(path), overwrite=overwrite) as local:
            yield local
        return
    target = _target(path)
    with _errors(path):
        _refuse_folder(target, path, overwrite=overwrite)
        temporary = Path(_temporary_name(target))
        temporary.mkdir()
    try:
        with _errors(path, hint="is the disk full?"):
            yield temporary
            _put_in_place(temporary, target, path, overwrite=overwrite)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # by now the old one, when it was exchanged for the new one


def check_file(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Say now what :func:`replacing_file` would say when there is something to write.

    Raises:
        ResultError: as there.
    """
    if is_address(path):
        check_address(os.fspath(path), overwrite=overwrite, is_folder=False)
        return
    target = _target(path)
    with _errors(path):
        _refuse_file(target, path, overwrite=overwrite)
        if not _is_special(target):
            temporary = _temporary_name(target)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            os.unlink(temporary)
        elif not os.access(target, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def check_folder(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Say now what :func:`replacing_folder` would say when there is something to write.

    Raises:
        ResultError: as there.
    """
    if is_address(path):
        check_address(os.fspath(path), overwrite=overwrite, is_folder=True)
        return
    target = _target(path)
    with _errors(path):
        _refuse_folder(target, path, overwrite=overwrite)
        temporary = _temporary_name(target)
        os.mkdir(temporary)
        os.rmdir(temporary)


HOW_TO_REPLACE = "choose another name, or replace it: -f on the command line, overwrite=True in Python"


def _refuse_file(target: Path, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    if target.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not overwrite and os.path.lexists(target) and not _is_special(target):
        raise ResultError(f"{shown_path(path)} exists", hint=HOW_TO_REPLACE)


def _refuse_folder(target: Path, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    exists = os.path.lexists(target)
    if exists and not (target / "run.json").is_file():
        raise ResultError(f"{shown_path(path)} is not a saved run and is not replaced", hint="choose another name")
    if exists and not overwrite:
        raise ResultError(f"{shown_path(path)} exists", hint=HOW_TO_REPLACE)


def _link(temporary: Path, target: Path, path: str | os.PathLike[str]) -> bool:
    """Give it its name unless there is such a file by now; False: the file system has no hard links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise ResultError(
            f"{shown_path(path)} exists", hint="another process saved there meanwhile: choose another name"
        ) from None
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK):
            raise
        return False
    return True


def _put_in_place(temporary: Path, target: Path, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """At no time there is nothing under the name, nor a mixture; where the file system can, else for a moment nothing."""
    while True:
        try:
            temporary.rename(target)
            return
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        if not overwrite:
            raise ResultError(
                f"{shown_path(path)} exists", hint="another process saved there meanwhile: choose another name"
            )
        try:
            _exchange(temporary, target)
            return
        except FileNotFoundError:
            continue  # another process took it away meanwhile
        except OSError as e:
            if e.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
                raise
        old = Path(_temporary_name(target))
        try:
            target.rename(old)
        except FileNotFoundError:
            continue
        try:
            temporary.rename(target)
        finally:
            shutil.rmtree(old, ignore_errors=True)
        return


def _exchange(first: Path, second: Path) -> None:
    """Each gets the other's name, in one step (renameat2)."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _target(path: str | os.PathLike[str]) -> Path:
    """Where `path` leads, absolute: the program may change its folder before the file is finished."""
    if not os.fspath(path):
        raise ResultError("cannot write: the path is empty", hint="give a name")
    try:
        os.fsencode(path)
        with _errors(path):
            target = Path(os.path.realpath(local_path(path)))
            if target.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            return target
    except ValueError as e:  # a null byte, or lone surrogates that are not bytes of a file name
        raise ResultError(f"cannot write {shown_path(path)}: {e}", hint="choose another name") from None


def _temporary_name(target: Path) -> str:
    """Beside the target, and not longer than names may be."""
    return os.path.join(target.parent, f".cuptiprof-{os.getpid()}-{secrets.token_hex(4)}")


def _is_special(target: Path) -> bool:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _errors(path: str | os.PathLike[str], hint: str = "") -> Iterator[None]:
    """What the file system says, in the one error tree."""
    try:
        yield
    except OSError as e:
        advice = {
            errno.ENAMETOOLONG: "give a shorter name",
            errno.ENOENT: "make the folder first",
            errno.ENOTDIR: "a part of the path is a file: name a folder",
            errno.EACCES: "choose a folder where you may write",
            errno.EROFS: "choose a folder where you may write",
            errno.EISDIR: "that is a folder: give the name of a file",
            errno.ELOOP: "the symbolic links lead in a circle",
        }.get(e.errno or 0, hint)
        raise ResultError(f"cannot write {shown_path(path)}: {e.strerror or e}", hint=advice) from None
