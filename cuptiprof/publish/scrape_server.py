"""The HTTP server of prometheus-client, for one WSGI application, which leaves nothing behind when it is closed."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import selectors
import socket
import socketserver
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import ThreadingWSGIServer

_PATIENCE = 2.0  # s for the thread's end
_REQUEST_S = 10.0  # in which a request must come, and its answer be taken
_PAUSE = 0.05  # s
_MOST_AT_ONCE = 8
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal is the user's."""

    def address_string(self) -> str:
        """Without looking a name up."""
        return str(self.client_address[0])


class _Server(ThreadingWSGIServer):  # type: ignore[misc]
    request_queue_size = 2 * _MOST_AT_ONCE
    timeout = 0  # of handle_request(): who connected is there already, or gone

    def __init__(self, family: int, address: tuple[str, int]) -> None:
        self.address_family = family
        self._free = threading.Semaphore(_MOST_AT_ONCE)
        self.connections: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Without the reverse look-up of our own name that http.server makes."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]
        self.setup_environ()

    def finish(self, seconds: float) -> None:
        """Who has asked is answered; who has not, or does not take it, is not waited for."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        until = time.monotonic() + seconds
        for _ in range(_MOST_AT_ONCE):
            if not self._free.acquire(timeout=max(until - time.monotonic(), 0)):
                break
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: socket.socket, client_address: Any) -> None:
        """One more than are served at once is turned away."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self.connections.add(request)
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started
            self._done(request)
            raise

    def process_request_thread(self, request: socket.socket, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._done(request)

    def get_request(self) -> Any:
        """What fails here (no descriptor is left) fails again at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)
            raise

    def _done(self, request: socket.socket) -> None:
        self.connections.discard(request)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who went away, or took too long, is nothing to tell of."""


class ScrapeServer:
    """Listens from the beginning; serves in a thread of its own until ``end()``.

    Attributes:
        address, port: where it listens.
    """

    def __init__(self, address: str, port: int, application: Application) -> None:
        """Raises:
        OSError: it cannot listen there; RuntimeError: no thread can be started.
        """
        family, *_, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self._server = _Server(family, (str(where[0]), port))
        self._server.socket.setblocking(False)  # who asked to connect may be gone
        self.address, self.port = self._server.server_address[:2]
        is_loopback = ipaddress.ip_address(self.address).is_loopback
        self._server.set_app(_to_loopback_only(application, self.address) if is_loopback else application)
        self._pid = os.getpid()
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="cuptiprof-prom", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.close_sockets()
            raise
        _open.add(self)

    def end(self) -> None:
        """Nobody can connect any more, and who is connected no longer is."""
        if self._pid != os.getpid() or self not in _open:
            return
        with contextlib.suppress(OSError):
            self._wake.send(b".")
        if self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)
        self._server.finish(_PATIENCE)
        self.close_sockets()
        _open.discard(self)

    def close_sockets(self) -> None:
        """Only what this process has of them."""
        self._server.socket.close()
        self._wake.close()
        self._woken.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(self._server.socket, selectors.EVENT_READ)
            while self._woken not in {key.fileobj for key, _ in selector.select()}:
                self._server.handle_request()


def _to_loopback_only(application: Application, address: str) -> Application:
    """Not for a page of a browser whose name was made to lead here (DNS rebinding)."""

    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        host = re.sub(r":\d*$", "", environ.get("HTTP_HOST", ""))
        if host.strip("[]") in (*_LOOPBACK, address):
            return application(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"this server answers to 127.0.0.1 and localhost only\n"]

    return guarded


_open: weakref.WeakSet[ScrapeServer] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for server in list(_open):
        server.close_sockets()
        for connection in server._server.connections:
            connection.close()
    _open.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
