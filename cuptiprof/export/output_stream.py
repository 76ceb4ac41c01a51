"""Where an export writes its text: a file, or one that is compressed by several threads."""

from __future__ import annotations

import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

_LEVEL = 3
"""of zlib: of trace events it makes a tenth, as much as level 6 within 15 %, in a third of its time"""
_BLOCK = 1 << 20
"""bytes that are compressed together at least; what is written at once is not cut"""
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_MOST_THREADS = 8


class OutputStream(Protocol):
    """What can be written to."""

    def write(self, data: bytes, /) -> object: ...


class _GzipBlocks:
    """One gzip member of blocks that were compressed side by side, as pigz makes it; the same bytes on every machine.

    Each block ends at a full flush, so that one knows nothing of another.
    """

    def __init__(self, file: BinaryIO, pool: ThreadPoolExecutor, ahead: int) -> None:
        self._file, self._pool, self._ahead = file, pool, ahead
        self._on_their_way: deque[Future[bytes]] = deque()
        self._rest: list[bytes] = []
        self._waiting = self._crc = self._size = 0
        file.write(_HEADER)

    def write(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._rest.append(data)
        self._waiting += len(data)
        if self._waiting < _BLOCK:
            return
        self._on_their_way.append(self._pool.submit(_compressed, b"".join(self._rest)))
        self._rest, self._waiting = [], 0
        if len(self._on_their_way) > self._ahead:
            self._file.write(self._on_their_way.popleft().result())

    def finish(self) -> None:
        for block in self._on_their_way:
            self._file.write(block.result())
        self._file.write(_compressed(b"".join(self._rest), zlib.Z_FINISH))
        self._file.write(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))


def _compressed(data: bytes, end: int = zlib.Z_FULL_FLUSH) -> bytes:
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(data) + deflate.flush(end)


@contextmanager
def opened_output(path: Path, compress: bool) -> Iterator[OutputStream]:
    """The file, written anew; gzip if ``compress``."""
    with path.open("wb") as file:
        if not compress:
            yield file
            return
        threads = min(os.cpu_count() or 1, _MOST_THREADS)
        with ThreadPoolExecutor(threads, "cuptiprof-gzip") as pool:
            blocks = _GzipBlocks(file, pool, 2 * threads)
            yield blocks
            blocks.finish()
