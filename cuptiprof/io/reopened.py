"""A file that stays readable after its name is gone or leads to another: what a run opened before it was replaced reads from."""

from __future__ import annotations

import errno
import io
import os
import stat
import weakref
from typing import Any


class ReopenedFile(io.RawIOBase):
    """Reads by ``pread``, so that a forked child does not move the position of its parent. Not mapped: a file that is cut
    short meanwhile gives a short read, not a signal."""

    def __init__(self, name: str, folder: int) -> None:
        """`name` in the open `folder`. Raises OSError."""
        super().__init__()
        # A named pipe would keep us waiting for its writer.
        self._descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: os.fstat(self._descriptor).st_size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = max(os.fstat(self._descriptor).st_size - self._at, 0)
        found = os.pread(self._descriptor, size, self._at)
        self._at += len(found)
        return found

    def handed_to_arrow(self) -> Any:
        """The same file as one of Arrow's own, in place of this one. Its threads may hold on to what they read from until the process
        ends; for an object of Python's they would then ask an interpreter that is ending, which aborts the process (apache/arrow#34314).

        Raises:
            OSError: it is no file, or there is no room for one more.
        """
        import pyarrow as pa

        with self:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a file")
            return pa.OSFile(f"/proc/self/fd/{self._descriptor}")

    def close(self) -> None:
        self._close()
        super().close()
