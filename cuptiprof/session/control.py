"""Control calls of a session: one at a time, only in the process that started it, and never one inside another."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cuptiprof import _core
from cuptiprof.errors import SessionError

USE_SPAWN = (
    "CUDA and CUPTI do not work after a fork; to profile a child process start it with multiprocessing's "
    '"spawn" method (`with` blocks around the fork may end in the child as usual)'
)


class Control:
    """Serialises the calls of several threads. A signal handler runs on the thread it interrupts: its call is refused.

    A session calls :meth:`begin` when it starts and :meth:`end` when it has ended, both inside a :meth:`call`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._call = ""
        self._frame: FrameType | None = None  # where that call is made
        self._pid = 0  # of the process that started the session; 0: none did

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """For the length of one control call.

        Raises:
            SessionError: the calling thread is in the middle of another one, or in a forked child.
        """
        if self.is_inherited:
            raise SessionError("this session belongs to the process that forked this one", hint=USE_SPAWN)
        with self._lock:
            if self._call and self._is_below():
                raise SessionError(
                    f"{name} in the middle of {self._call}",
                    hint="a signal handler or a destructor called it; set a flag there, and call it in the program itself",
                )
            self._call, self._frame = name, sys._getframe(2)  # whose `with` it is: in between is contextlib's __enter__
            try:
                yield
            finally:
                self._call, self._frame = "", None

    def _is_below(self) -> bool:
        """The call that was noted goes on. Otherwise an interruption came before its block was entered or cleared."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None

    @contextmanager
    def for_user(self) -> Iterator[None]:
        """While a function of the user runs inside a control call: it may make others."""
        name, self._call = self._call, ""
        try:
            yield
        finally:
            self._call = name

    @property
    def is_inherited(self) -> bool:
        """A forked child has a copy of a session that is another process's."""
        return self._pid not in (0, os.getpid())

    def begin(self) -> None:
        """A session starts in this process.

        Raises:
            SessionError: it was forked while a session ran.
        """
        if label := _core.inherited_session():
            raise SessionError(
                f"this process was forked from one whose cuptiprof session was running: {label}", hint=USE_SPAWN
            )
        self._pid = os.getpid()

    def end(self) -> None:
        """The session ended: a child forked from now on may start one of its own."""
        self._pid = 0
