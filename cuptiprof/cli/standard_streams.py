"""Standard output and standard error as a program may have left them; progress bars."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from cuptiprof.data.result import Progress
from cuptiprof.errors import ResultError


def write(stream: TextIO, text: str) -> None:
    """What the encoding of the stream (an ASCII locale) cannot say is written as \\escapes.

    Raises:
        ResultError: it is closed.
    """
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    except ValueError as e:
        raise ResultError(f"cannot print: {e}", hint="--log-file FILE writes to a file") from None
    stream.flush()


def usable(stream: Any) -> bool:
    """There is one, and it is open."""
    return stream is not None and not getattr(stream, "closed", False)


def tolerate(stream: Any) -> None:
    """From now on a stream writes what its encoding cannot say as \\escapes."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors="backslashreplace")


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A progress callback that draws a bar on a terminal; None where there is none."""
    if not usable(sys.stderr) or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
