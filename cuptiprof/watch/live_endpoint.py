"""Where a session that runs can be watched: a Unix socket of its user's, named after its process.

``$XDG_RUNTIME_DIR/cuptiprof/PID.sock``, or ``/tmp/cuptiprof-UID/PID.sock`` where there is no such folder. The folder is the user's and
closed to others (0700), the socket 0600, and each side asks the kernel who the other is.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import tempfile
import weakref
from pathlib import Path

from cuptiprof.errors import SessionError

SUFFIX = ".sock"
MOST_WATCHERS = 16
_LONGEST_PATH = 107  # bytes: what Linux has room for in the address of such a socket
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def endpoint_folder() -> Path:
    """Where the sockets of this user are; it need not exist."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        return Path(runtime) / "cuptiprof"
    return Path(tempfile.gettempdir()) / f"cuptiprof-{os.geteuid()}"


def check_own(path: Path) -> None:
    """That nobody but this user can have put something there.

    Raises:
        SessionError: a link, somebody else's, or open to others.
    """
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SessionError(
            f"{path} is not a folder of yours that is closed to others",
            hint="remove it, or set XDG_RUNTIME_DIR to a folder of yours",
        )


def user_of(connection: socket.socket) -> int:
    """The user at the other side, as the kernel knows it."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])


class LiveEndpoint:
    """The socket of this process, and who is connected to it. Nothing here waits."""

    def __init__(self) -> None:
        """Raises:
        SessionError: there is no place for it.
        """
        folder = endpoint_folder()
        self.path = folder / f"{os.getpid()}{SUFFIX}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.watchers: list[socket.socket] = []
        try:
            if len(os.fsencode(self.path)) > _LONGEST_PATH:
                raise SessionError(f"{self.path} is too long for a socket", hint="set XDG_RUNTIME_DIR to a shorter one")
            folder.mkdir(mode=0o700, exist_ok=True)
            check_own(folder)
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()  # of a process that was killed and had our number
            self.listener.bind(str(self.path))
            self.path.chmod(0o600)
            self.listener.listen(MOST_WATCHERS)
        except OSError as e:
            self.listener.close()
            raise SessionError(f"cannot listen at {self.path}: {e.strerror}") from None
        except SessionError:
            self.listener.close()
            raise
        _open.add(self)

    def accept(self) -> socket.socket | None:
        """Somebody connects; None: he is nobody we know, or one too many."""
        try:
            watcher, _ = self.listener.accept()
        except OSError:
            return None
        watcher.setblocking(False)
        if user_of(watcher) not in (os.geteuid(), 0) or len(self.watchers) >= MOST_WATCHERS:
            watcher.close()
            return None
        self.watchers.append(watcher)
        return watcher

    def send(self, line: bytes) -> list[socket.socket]:
        """To all. Returns those who are gone, or do not read: they are left out from now on, and are to be closed."""
        gone = []
        for watcher in self.watchers:
            try:
                if watcher.send(line) < len(line):
                    gone.append(watcher)
            except OSError:
                gone.append(watcher)
        for watcher in gone:
            self.watchers.remove(watcher)
        return gone

    def close(self) -> None:
        """Nobody can connect any more."""
        _open.discard(self)
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.close_sockets()

    def close_sockets(self) -> None:
        """Only what this process has of them."""
        for each in (self.listener, *self.watchers):
            each.close()
        self.watchers.clear()


_open: weakref.WeakSet[LiveEndpoint] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for endpoint in list(_open):
        endpoint.close_sockets()
    _open.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
