"""The thread that asks a session for its numbers once a second and hands them out, while anybody wants them."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

import msgspec

from cuptiprof import _core
from cuptiprof.errors import SessionError
from cuptiprof.io.at_exit import before_exit
from cuptiprof.watch.live_endpoint import LiveEndpoint
from cuptiprof.watch.live_figures import LiveFigures, LiveSampler, LiveSubject

PERIOD = 1.0  # s
_SEND_BUFFER = 1 << 20  # bytes: a watcher who lags by more is left out
_PATIENCE = 2.0  # s for the thread's last round

OnLive = Callable[[LiveFigures], object]


class LiveFeed:
    """Runs from entering to leaving; may be left twice, and before it was entered.

    Args:
        on_live: called with the numbers, from the thread; when it raises, that is shown and it is called no more.
        serve: ``cuptiprof top`` can connect.
    """

    def __init__(self, session: _core.Session, subject: LiveSubject, *, on_live: OnLive | None, serve: bool) -> None:
        self._sampler = LiveSampler(session, subject)
        self._on_live = on_live
        self._serve = serve
        self._endpoint: LiveEndpoint | None = None
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._wake: tuple[socket.socket, socket.socket] | None = None

    def __enter__(self) -> LiveFeed:
        self._endpoint = LiveEndpoint() if self._serve else None
        self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="cuptiprof-live", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as e:
            self._thread = None
            raise SessionError(f"cannot watch: {e}", hint="the limit on threads (ulimit -u) is reached") from None
        before_exit(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Tell those who watch the last numbers, and end."""
        if self._pid != os.getpid():
            return
        if self._wake is not None:
            self._wake[1].close()  # which the thread sees
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join(_PATIENCE)
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    def _run(self) -> None:
        assert self._wake is not None
        woken = self._wake[0]
        with selectors.DefaultSelector() as selector, woken:
            selector.register(woken, selectors.EVENT_READ)
            if self._endpoint is not None:
                selector.register(self._endpoint.listener, selectors.EVENT_READ)
            due = time.monotonic() + PERIOD
            while True:
                for key, _ in selector.select(max(due - time.monotonic(), 0)):
                    if key.fileobj is woken:
                        self._tell(selector)
                        return
                    self._hear(selector, key.fileobj)  # type: ignore[arg-type]
                if (now := time.monotonic()) >= due:
                    due = max(due + PERIOD, now + PERIOD / 2)
                    self._tell(selector)

    def _hear(self, selector: selectors.BaseSelector, connection: socket.socket) -> None:
        """Somebody connects; or says something, which nobody is to, or leaves."""
        assert self._endpoint is not None
        if connection is not self._endpoint.listener:
            selector.unregister(connection)
            self._endpoint.watchers.remove(connection)
            connection.close()
            return
        was_watched = self._is_watched()
        watcher = self._endpoint.accept()
        if watcher is not None:
            watcher.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            selector.register(watcher, selectors.EVENT_READ)
            if not was_watched:
                self._sampler.begin_interval()

    def _is_watched(self) -> bool:
        return self._on_live is not None or (self._endpoint is not None and bool(self._endpoint.watchers))

    def _tell(self, selector: selectors.BaseSelector) -> None:
        if not self._is_watched():
            return
        figures = self._sampler.sample()
        if self._endpoint is not None and self._endpoint.watchers:
            for gone in self._endpoint.send(msgspec.json.encode(figures) + b"\n"):
                selector.unregister(gone)
                gone.close()
        if self._on_live is not None:
            try:
                self._on_live(figures)
            except Exception:
                self._on_live = None
                sys.excepthook(*sys.exc_info())
