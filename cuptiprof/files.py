"""Writing files so that a reader sees all of the new one or all of the old one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuptiprof.errors import ResultError


@contextmanager
def replacing_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well, and vanishes otherwise.

    Raises:
        ResultError: the file cannot be written (no such folder, no permission, disk full).
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or ".")
        os.close(handle)
    except OSError as e:
        raise ResultError(f"cannot write {target}: {e.strerror}") from None
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as f:
            os.fsync(f.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as e:
        raise ResultError(f"cannot write {target}: {e.strerror}", hint="is the disk full?") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends well, and vanishes otherwise.

    Raises:
        ResultError: it exists and `overwrite` is false, or it cannot be written.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise ResultError(f"{target} exists", hint="choose another name, or overwrite=True")
    if target.exists() and not (target / "run.json").is_file():
        raise ResultError(f"{target} is not a saved run and is not replaced", hint="choose another name")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent or "."))
    except OSError as e:
        raise ResultError(f"cannot write {target}: {e.strerror}") from None
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        old = temporary.with_name(temporary.name + ".old")
        if target.exists():
            target.rename(old)
        temporary.rename(target)
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)
    except OSError as e:
        raise ResultError(f"cannot write {target}: {e.strerror or e}", hint="is the disk full?") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
