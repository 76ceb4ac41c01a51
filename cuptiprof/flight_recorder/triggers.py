"""What makes the recorder save what it has. Each is a small object that is armed with a function to call, and disarmed."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from cuptiprof.analysis.training_steps.step_outliers import step_outliers
from cuptiprof.errors import SessionError
from cuptiprof.flight_recorder.figures import RecorderFigures

Fire = Callable[[str], object]
"""Asks for a snapshot with this reason; returns at once, and may be called from anywhere."""


class Trigger:
    """Does nothing. Of these methods a trigger has those that it needs.

    Attributes:
        must_wait: the program may end next: the snapshot is written before the trigger returns.
        needs: what the session must collect beside for its ``look()``: "live" (sums by kernel, once a second), "system" (readings).
    """

    must_wait = False
    needs: frozenset[str] = frozenset()

    def arm(self, fire: Fire) -> None:
        """The recorder starts."""

    def disarm(self) -> None:
        """It stops; called once for each ``arm()``."""

    def step(self, took_ns: int, fire: Fire) -> None:
        """A step ended, on the thread that called ``recorder.step()``."""

    def look(self, figures: RecorderFigures, fire: Fire) -> None:
        """A few times a second, on the recorder's thread. `figures`: see :class:`When`."""


class SlowStep(Trigger):
    """A step that stands out among the last ones: beyond Tukey's outer fence of their durations, and 1.5 times their median at least.

    Args:
        among: how many of the last steps it is compared with.
        limit_ms: any step that takes longer, too; None: no such limit.
    """

    def __init__(self, among: int = 100, limit_ms: float | None = None) -> None:
        self._last: deque[int] = deque(maxlen=among)
        self._limit_ns = None if limit_ms is None else limit_ms * 1e6

    def step(self, took_ns: int, fire: Fire) -> None:
        self._last.append(took_ns)
        if self._limit_ns is not None and took_ns > self._limit_ns:
            fire(f"slow step: {took_ns / 1e6:.1f} ms")
            return
        found, median = step_outliers(np.array(self._last, np.int64))
        if len(self._last) - 1 in found:
            fire(f"slow step: {took_ns / 1e6:.1f} ms, median {median / 1e6:.1f} ms")


class UncaughtException(Trigger):
    """An exception that nobody catches, of the main thread or another; what else is called for it is called after."""

    must_wait = True

    def arm(self, fire: Fire) -> None:
        self._before, self._before_threads = sys.excepthook, threading.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            fire(f"exception: {kind.__name__}")
            self._before(kind, error, trace)

        def thread_hook(args: Any) -> None:
            if args.exc_type is not SystemExit:
                fire(f"exception: {args.exc_type.__name__}")
            self._before_threads(args)

        self._hooks = hook, thread_hook
        sys.excepthook, threading.excepthook = hook, thread_hook

    def disarm(self) -> None:
        hook, thread_hook = self._hooks
        if sys.excepthook is hook:  # else somebody put theirs over it, and calls ours
            sys.excepthook = self._before
        if threading.excepthook is thread_hook:
            threading.excepthook = self._before_threads


class OnSignal(Trigger):
    """A signal, ``kill -USR1 PID``. The recorder must be started on the main thread; a handler that was there is called after.

    Raises (when the recorder starts):
        SessionError: not on the main thread.
    """

    def __init__(self, number: int = signal.SIGUSR1) -> None:
        self._signal = signal.Signals(number)

    def arm(self, fire: Fire) -> None:
        def handler(number: int, frame: FrameType | None) -> None:
            fire(f"signal: {self._signal.name}")
            if callable(self._before):
                self._before(number, frame)

        try:
            self._before = signal.signal(self._signal, handler)
        except ValueError:
            raise SessionError("a signal handler is set on the main thread", hint="start the recorder there") from None
        self._handler = handler

    def disarm(self) -> None:
        with contextlib.suppress(ValueError):  # on another thread: it stays, and asks a recorder that has ended
            if signal.getsignal(self._signal) is self._handler:
                signal.signal(self._signal, self._before if self._before is not None else signal.SIG_DFL)


class OnFile(Trigger):
    """A file that appears (``touch``); it is removed, so that it can appear again."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()

    def look(self, figures: RecorderFigures, fire: Fire) -> None:
        with contextlib.suppress(OSError):
            if self._path.lstat():
                self._path.unlink()
                fire(f"file: {self._path.name}")


class OnSocket(Trigger):
    """A line on a TCP port of the loopback interface: the token, and why. Answered with ``ok``.

    ``echo "$TOKEN looked slow" | nc 127.0.0.1 PORT``.

    Args:
        port: 0: any that is free, see ``address``.
        token: what the line must begin with; None: a random one, see ``token``.

    Attributes:
        address: ("127.0.0.1", port), once the recorder has started.
        token: str.
    """

    _LONGEST = 1024
    _PATIENCE = 2.0

    def __init__(self, port: int = 0, token: str | None = None) -> None:
        self._port = port
        self.token = secrets.token_urlsafe(16) if token is None else token
        self.address = ("127.0.0.1", port)

    def arm(self, fire: Fire) -> None:
        try:
            self._server = socket.create_server(("127.0.0.1", self._port))
        except OSError as e:
            raise SessionError(f"cannot listen on port {self._port}: {e.strerror}") from None
        self.address = self._server.getsockname()
        self._thread = threading.Thread(
            target=self._serve, args=[self._server, fire], name="cuptiprof-ask", daemon=True
        )
        self._thread.start()

    def disarm(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept()
        self._server.close()
        if self._thread is not threading.current_thread():
            self._thread.join(self._PATIENCE * 2)

    def _serve(self, server: socket.socket, fire: Fire) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(self._PATIENCE)
                given, _, why = self._line(connection).partition(b" ")
                if hmac.compare_digest(given, self.token.encode()):
                    fire("asked" + (f": {why.decode(errors='replace')}" if why else ""))
                    connection.sendall(b"ok\n")
                else:
                    connection.sendall(b"no\n")

    def _line(self, connection: socket.socket) -> bytes:
        got = b""
        while b"\n" not in got and len(got) < self._LONGEST:
            more = connection.recv(self._LONGEST - len(got))
            if not more:
                break
            got += more
        return got.partition(b"\n")[0].strip()


class When(Trigger):
    """A condition on what the recorder knows of the program: ``When(lambda now: now["launches_per_second"] < 100)``.

    Args:
        condition: is called a few times a second, on the recorder's thread, with a mapping:
            ``launches_per_second`` since it was called last (NaN: not all of that was observed), ``step_seconds`` (the last step; NaN: none), ``lost`` (rows and records
            lost so far), ``bytes`` (held in memory). True, or a text that says why, when it comes to be so: not again while it stays so.
    """

    def __init__(self, condition: Callable[[Mapping[str, float]], bool | str]) -> None:
        self._condition = condition
        self._was = False

    def look(self, figures: RecorderFigures, fire: Fire) -> None:
        found = self._condition(figures)
        if found and not self._was:
            fire(f"condition: {found}" if isinstance(found, str) else "condition")
        self._was = bool(found)
