"""A server for the browser on this machine, of contents that are known when it starts.

It listens on 127.0.0.1 alone, at a port that the system chooses, and answers GET of the addresses it has, below a secret that is part of
them. What a browser was led to by another page is refused: a Host that is not this server (DNS rebinding), an Origin that is not,
requests from other sites but for the address typed or clicked. Paths are compared, never looked up among files; nothing is written.
"""

from __future__ import annotations

import hmac
import http.server
import io
import secrets
import shutil
import socket
import socketserver
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

_HOST = "127.0.0.1"
_REQUEST_S = 10.0
"""In which a request must have come, however slowly it is sent."""
_ANSWER_S = 30.0
"""In which a piece of the answer must have been taken."""
_MOST_AT_ONCE = 32
_REFUSED = "default-src 'none'; frame-ancestors 'none'"


@dataclass(frozen=True)
class Content:
    """What an address gives: bytes or a file as it is then, its media type, and the policy (CSP) under which a browser shows it."""

    body: bytes | Path
    media_type: str
    policy: str


class LoopbackServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Serves ``contents``, address below the secret ("" is the page itself) -> what it gives, from ``serve_forever()`` on."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * _MOST_AT_ONCE

    def __init__(self, contents: Mapping[str, Content]) -> None:
        super().__init__((_HOST, 0), _Handler)
        self.token = secrets.token_urlsafe(32)
        self.contents = dict(contents)
        self.host = f"{_HOST}:{self.server_address[1]}"
        self._free = threading.Semaphore(_MOST_AT_ONCE)

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{self.host}/{self.token}/"

    def server_bind(self) -> None:
        """Without the reverse look-up of our own name that http.server makes."""
        socketserver.TCPServer.server_bind(self)

    def found(self, path: str) -> Content | None:
        """What an address gives, in a time that does not tell how much of the secret was right."""
        _, token, rest = path.split("/", 2) if path.count("/") >= 2 else ("", "", "")
        is_right = hmac.compare_digest(token.encode(errors="replace"), self.token.encode())
        return self.contents.get(rest) if is_right and path.startswith("/") else None

    def process_request(self, request: Any, client_address: Any) -> None:
        """One more than are served at once is turned away."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who went away, or took too long, is nothing to tell of."""


class _UntilDeadline(io.RawIOBase):
    """What comes from a socket until a moment."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until = time.monotonic() + _REQUEST_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: LoopbackServer
    server_version = "cuptiprof"
    sys_version = ""
    default_request_version = "HTTP/1.0"  # 0.9 has answers without a head

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_UntilDeadline(self.connection))

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        status = self._refused()
        if status is not None:
            self.send_error(status)
        return status is None

    def _refused(self) -> HTTPStatus | None:
        if self.command != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            return HTTPStatus.BAD_REQUEST
        if self.headers.get_all("Host", []) != [self.server.host]:
            return HTTPStatus.FORBIDDEN
        if any(origin != f"http://{self.server.host}" for origin in self.headers.get_all("Origin", [])):
            return HTTPStatus.FORBIDDEN
        is_foreign = self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        if is_foreign and self.headers.get("Sec-Fetch-Dest") != "document":
            return HTTPStatus.FORBIDDEN
        return None

    def do_GET(self) -> None:
        # What was typed: parse_request() makes "//" at the beginning one "/".
        words = self.requestline.split()
        content = self.server.found(words[1]) if len(words) == 3 else None
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.connection.settimeout(_ANSWER_S)
        if isinstance(content.body, bytes):
            self._begin(HTTPStatus.OK, len(content.body), content.media_type, content.policy)
            self.wfile.write(content.body)
            return
        with open(content.body, "rb") as file:
            self._begin(HTTPStatus.OK, content.body.stat().st_size, content.media_type, content.policy)
            shutil.copyfileobj(file, self.wfile, 1 << 20)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """In a word: nothing of the request comes back."""
        body = HTTPStatus(code).phrase.encode()
        self.close_connection = True
        self._begin(code, len(body), "text/plain; charset=utf-8", _REFUSED)
        self.wfile.write(body)

    def _begin(self, status: int, size: int, media_type: str, policy: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", media_type),
            ("Content-Length", str(size)),
            ("Content-Security-Policy", policy),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            *([("Allow", "GET")] if status == HTTPStatus.METHOD_NOT_ALLOWED else []),
        ):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal is the user's."""
