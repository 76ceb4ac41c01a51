"""Watching a session of another process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cuptiprof.errors import SessionError
from cuptiprof.watch.live_endpoint import SUFFIX, check_own, endpoint_folder, user_of
from cuptiprof.watch.live_figures import LiveFigures

_LONGEST_LINE = 4 << 20  # bytes
_TO_BE_WATCHED = "start it with `cuptiprof run --live-remote`, or with cuptiprof.profile(live=True)"


def watchable() -> list[int]:
    """Processes of this user that can be watched. What a process that was killed left behind is removed."""
    folder = endpoint_folder()
    if not folder.is_dir():
        return []
    check_own(folder)
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        if not path.stem.isdecimal():
            continue
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with connection:
            try:
                connection.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
                continue
            except OSError:
                continue
        found.append(int(path.stem))
    return sorted(found)


class LiveWatcher:
    """The numbers of a process, one after the other until its session ends.

    Use as a context manager and iterate.
    """

    def __init__(self, pid: int) -> None:
        """Raises:
        SessionError: it cannot be watched, or is somebody else's.
        """
        path: Path = endpoint_folder() / f"{pid}{SUFFIX}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if path.parent.exists():
                check_own(path.parent)
            self._socket.connect(str(path))
            if user_of(self._socket) != os.geteuid():
                raise SessionError(f"process {pid} is another user's")
        except (OSError, OverflowError) as e:
            self._socket.close()
            why = e.strerror if isinstance(e, OSError) and e.errno not in (2, 111) else "it has no session to watch"
            raise SessionError(f"cannot watch process {pid}: {why}", hint=_TO_BE_WATCHED) from None
        except SessionError:
            self._socket.close()
            raise

    def __enter__(self) -> LiveWatcher:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def __iter__(self) -> Iterator[LiveFigures]:
        """Raises:
        SessionError: what comes are no such numbers.
        """
        decoder = msgspec.json.Decoder(LiveFigures)
        rest = b""
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionResetError:
                return
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise SessionError("what the process says is no numbers of a session")
            for line in lines:
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    raise SessionError(
                        "what the process says is no numbers of a session",
                        hint="its cuptiprof may be of another version",
                    ) from None


def the_only_one() -> int:
    """The process to watch where none was named.

    Raises:
        SessionError: there is none, or several.
    """
    found = watchable()
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionError("no session of yours can be watched", hint=_TO_BE_WATCHED)
    raise SessionError(f"{len(found)} sessions can be watched", hint=f"name the process: {', '.join(map(str, found))}")
