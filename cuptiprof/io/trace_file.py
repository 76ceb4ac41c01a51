"""A trace of torch.profiler as bytes: plain, gzip or Zstandard, told apart by their first bytes, whatever the file is called."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from isal import igzip
from isal.igzip_lib import IsalError

from cuptiprof.errors import ResultError

MAX_RATIO = 300
"""Limit of the decompressed size, in sizes of the file: a compressed file of a few MB can claim any size. Traces have 10 to 30."""
ALWAYS_ALLOWED = 64 << 20
"""bytes, decompressed, whatever the ratio"""
MOST_OF_A_PIPE = 64 << 30
"""bytes, decompressed, of what has no size"""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_PIECE = 1 << 18
"""bytes: what stays in a core's cache between reading and parsing"""


def looks_like_trace(path: Path) -> bool:
    """By its first bytes: JSON, or compressed. True also of what cannot be read, or only once: reading it says more."""
    try:
        if not path.is_file():
            return True
        with path.open("rb") as f:
            start = f.read(256)
    except OSError:
        return True
    return start.startswith((_GZIP, _ZSTD)) or start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def pieces(path: Path) -> Iterator[tuple[bytes, int, int]]:
    """The JSON text in pieces, each with how much of the file was read by then and the size of it (bytes; 0: unknown).

    Raises:
        ResultError: unreadable, truncated, damaged or too large.
    """
    kind = ""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            start = file.peek(4)[:4] if hasattr(file, "peek") else b""
            kind = "gzip" if start.startswith(_GZIP) else "Zstandard" if start.startswith(_ZSTD) else ""
            most = max(MAX_RATIO * size, ALWAYS_ALLOWED) if size else MOST_OF_A_PIPE
            done = 0
            with closing(_opened(file, kind)) as text:
                while piece := text.read(_PIECE):
                    done += len(piece)
                    at = file.tell() if file.seekable() else 0
                    if kind and done > most:
                        raise ResultError(
                            f"{path}: more than {most >> 20} MiB decompressed"
                            + (f", {MAX_RATIO} times the size of the file" if size else ""),
                            hint="no trace is like that; decompress it yourself if it is one",
                        )
                    yield piece, at, size
    except (EOFError, IsalError, gzip.BadGzipFile) as e:
        raise ResultError(f"{path}: truncated or damaged gzip file ({e})") from None
    except OSError as e:
        if kind and not e.errno:  # Arrow's
            raise ResultError(f"{path}: truncated or damaged {kind} file ({' '.join(str(e).split())})") from None
        raise ResultError(f"{path}: {e.strerror or e}") from None


def _opened(file: IO[bytes], kind: str) -> Any:
    if kind == "gzip":
        return igzip.IGzipFile(fileobj=file)
    if kind == "Zstandard":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    return file
