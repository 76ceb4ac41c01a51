"""Files that appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO


@contextmanager
def atomic_text(path: Path) -> Iterator[TextIO]:
    """A UTF-8 text file that takes the place of ``path`` when the block ends well, and vanishes if it does not.

    Compressed with gzip if the name ends in ``.gz`` (level 6, no time stamp: the same data give the same bytes).
    """
    name = path.parent / f".{path.name[:64]}.{os.getpid()}.{secrets.token_hex(4)}.part"
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as raw:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                    yield from _text(packed)
            else:
                yield from _text(raw)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _text(raw: IO[bytes]) -> Iterator[TextIO]:
    # "surrogatepass" would write what no reader takes; names with lone surrogates come escaped from the JSON writer.
    text = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=False)
    yield text
    text.flush()
    text.detach()
