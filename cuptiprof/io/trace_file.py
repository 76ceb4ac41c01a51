"""A trace of torch.profiler as bytes: plain, gzip or Zstandard, told apart by their first bytes, whatever the file is called."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from cuptiprof.errors import ResultError

MAX_BYTES = 4 << 30
"""Limit of the decompressed size: a compressed file of a few MB can claim any size."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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


def read_trace_file(path: Path) -> bytes:
    """The JSON text.

    Raises:
        ResultError: unreadable, truncated, damaged or too large.
    """
    try:
        raw = path.read_bytes()
        if raw.startswith(_GZIP):
            with gzip.open(path) as f:
                raw = f.read(MAX_BYTES + 1)
        elif raw.startswith(_ZSTD):
            raw = _without_zstd(path, raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise ResultError(f"{path}: truncated or damaged gzip file ({e})") from None
    except OSError as e:
        raise ResultError(f"{path}: {e.strerror or e}") from None
    if len(raw) > MAX_BYTES:
        raise ResultError(f"{path}: more than {MAX_BYTES >> 30} GiB decompressed")
    return raw


def _without_zstd(path: Path, raw: bytes) -> bytes:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as f:
            out: bytes = f.read(MAX_BYTES + 1)
    except (OSError, pa.ArrowException) as e:
        raise ResultError(f"{path}: truncated or damaged Zstandard file ({e})") from None
    return out
