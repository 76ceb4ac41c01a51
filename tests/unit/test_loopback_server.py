"""What the server of ``cuptiprof view`` answers, and what it does not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuptiprof.cli import loopback_server
from cuptiprof.cli.loopback_server import Content, LoopbackServer

PAGE, FILE = b"<!DOCTYPE html><title>page</title>", b"\x00\x01trace" * 100_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoopbackServer]:
    (tmp_path / "trace.bin").write_bytes(FILE)
    (tmp_path / "secret.txt").write_text("not to be served")
    contents = {
        "": Content(PAGE, "text/html; charset=utf-8", "frame-ancestors 'none'"),
        "a/trace.bin": Content(tmp_path / "trace.bin", "application/octet-stream", "default-src 'none'"),
    }
    with LoopbackServer(contents) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: LoopbackServer, request: str | bytes) -> tuple[int, dict[str, str], bytes]:
    """What comes back for these bytes: status, headers, body."""
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as connection:
        connection.sendall(request if isinstance(request, bytes) else request.encode("latin-1"))
        answer = b""
        try:
            while data := connection.recv(1 << 16):
                answer += data
        except ConnectionResetError:  # it did not read all that was sent
            pass
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    return int(lines[0].split()[1]), {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}, body


def get(server: LoopbackServer, path: str, *headers: str, host: str | None = None, method: str = "GET") -> str:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {server.host if host is None else host}", *headers]
    return "".join(f"{line}\r\n" for line in lines) + "\r\n"


def test_what_it_serves(server: LoopbackServer) -> None:
    status, headers, body = ask(server, get(server, f"/{server.token}/"))
    assert (status, body) == (200, PAGE)
    assert headers["content-type"] == "text/html; charset=utf-8" and headers["cache-control"] == "no-store"
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin" and headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers and "Python" not in headers["server"]
    status, headers, body = ask(server, get(server, f"/{server.token}/a/trace.bin"))
    assert (status, body) == (200, FILE) and int(headers["content-length"]) == len(FILE)


def test_only_this_machine_can_connect(server: LoopbackServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    others = {a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in [*others, "127.0.0.2"]:
        with pytest.raises(OSError):
            socket.create_connection((address, server.server_address[1]), timeout=2)


def test_secrets_and_ports_differ() -> None:
    with LoopbackServer({}) as one, LoopbackServer({}) as other:
        assert one.token != other.token and len(one.token) == 43
        assert one.host != other.host


PATHS = [
    "/", "", "//", "*", "/wrong/", "/{t}", "/{t}//", "//{t}/", "/{t}/a", "/{t}/a/", "/{t}/secret.txt", "/{t}/a/secret.txt",
    "/{t}/a/../a/trace.bin", "/{t}/../", "/{t}/../../etc/passwd", "/{t}/..%2f..%2fetc/passwd", "/{t}/%2e%2e/%2e%2e/etc/passwd",
    "/{t}/%61/trace.bin", "/{t}/a%2ftrace.bin", "/{t}/a\\trace.bin", "/{t}/./a/trace.bin", "/{t}/a/trace.bin%00", "/{t}/a/trace.bin?x",
    "/{t}/?x=1", "/{t}/#", "/{t}/;x", "/etc/passwd", "/%2e%2e/etc/passwd", "file:///etc/passwd", "http://{h}/{t}/", "http://evil.example/{t}/",
    "/{u}/", "/{t}x/", "/x{t}/", "/{c}/", "/\xe9/{t}/", "/" + "x/" * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_other_path(server: LoopbackServer, path: str) -> None:
    path = path.format(t=server.token, h=server.host, u=server.token.swapcase(), c=server.token[:-1])
    status, headers, body = ask(server, get(server, path))
    assert status in (400, 404, 414) and body in (
        b"Not Found",
        b"Bad Request",
        b"Request-URI Too Long",
        b"URI Too Long",
    )
    assert headers["cache-control"] == "no-store" and "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{p}", "127.0.0.1", "localhost:{p}", "127.0.0.1:1", "[::1]:{p}", "0.0.0.0:{p}", "127.0.0.1:{p}.evil.example", ""],
)  # fmt: skip
def test_no_other_host(server: LoopbackServer, host: str) -> None:
    """A name of somebody else's that leads to 127.0.0.1 (DNS rebinding)."""
    request = get(server, f"/{server.token}/", host=host.format(p=server.server_address[1]))
    assert ask(server, request)[::2] == (403, b"Forbidden")


def test_one_host_and_no_more(server: LoopbackServer) -> None:
    assert ask(server, f"GET /{server.token}/ HTTP/1.1\r\n\r\n")[0] == 403
    assert ask(server, get(server, f"/{server.token}/", "Host: evil.example"))[0] == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://{h}", "http://localhost:{p}", "http://127.0.0.1:1", "file://"]
)
def test_no_other_origin(server: LoopbackServer, origin: str) -> None:
    origin = origin.format(h=server.host, p=server.server_address[1])
    assert ask(server, get(server, f"/{server.token}/", f"Origin: {origin}"))[::2] == (403, b"Forbidden")


def test_its_own_origin(server: LoopbackServer) -> None:
    own = f"Origin: http://{server.host}"
    assert ask(server, get(server, f"/{server.token}/", own, "Sec-Fetch-Site: same-origin"))[0] == 200
    assert ask(server, get(server, f"/{server.token}/", own, "Origin: http://evil.example"))[0] == 403


def test_other_sites_may_lead_here_and_not_embed(server: LoopbackServer) -> None:
    for site in ("cross-site", "same-site"):
        for kind, status in (("document", 200), ("script", 403), ("image", 403), ("iframe", 403), ("empty", 403)):
            request = get(server, f"/{server.token}/", f"Sec-Fetch-Site: {site}", f"Sec-Fetch-Dest: {kind}")
            assert ask(server, request)[0] == status


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "get", "G\xcbT", "__class__"]
)
def test_only_get(server: LoopbackServer, method: str) -> None:
    status, headers, _ = ask(server, get(server, f"/{server.token}/", method=method))
    assert status == 405 and headers["allow"] == "GET"


def test_no_body(server: LoopbackServer) -> None:
    assert ask(server, get(server, f"/{server.token}/", "Content-Length: 5") + "hello")[0] == 400
    assert ask(server, get(server, f"/{server.token}/", "Transfer-Encoding: chunked") + "0\r\n\r\n")[0] == 400


def test_big_heads(server: LoopbackServer) -> None:
    assert ask(server, get(server, f"/{server.token}/", f"X: {'y' * 70_000}"))[0] == 431
    assert ask(server, get(server, f"/{server.token}/", *[f"X{i}: y" for i in range(200)]))[0] == 431
    assert ask(server, get(server, "/" + "x" * 70_000))[0] == 414
    assert ask(server, get(server, f"/{server.token}/"))[0] == 200


@pytest.mark.parametrize(
    "request_",
    [b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 5000 + b"\r\n\r\n"],
)
def test_what_is_no_request(server: LoopbackServer, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as connection:
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(1 << 16)
    assert b"200" not in answer.partition(b"\r\n")[0] and PAGE not in answer
    assert ask(server, get(server, f"/{server.token}/"))[0] == 200


def test_slow_clients_are_left(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte at a time keeps nobody else waiting, and ends."""
    monkeypatch.setattr(loopback_server, "_REQUEST_S", 1.0)
    slow = [socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) for _ in range(10)]
    began = time.monotonic()
    gone: set[int] = set()
    while len(gone) < len(slow):
        assert ask(server, get(server, f"/{server.token}/"))[0] == 200
        for i, connection in enumerate(slow):
            try:
                connection.sendall(b"G")
            except OSError:
                gone.add(i)
        time.sleep(0.1)
        assert time.monotonic() - began < 15
    for connection in slow:
        connection.close()


def test_more_than_are_served_at_once_are_turned_away(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_server, "_REQUEST_S", 3.0)
    idle = [socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) for _ in range(40)]
    time.sleep(0.5)
    assert idle[-1].recv(1) == b""  # closed at once
    idle[0].sendall(get(server, f"/{server.token}/").encode())
    assert b"200 OK" in idle[0].recv(100)  # who was there first is served
    time.sleep(3.5)
    assert ask(server, get(server, f"/{server.token}/"))[0] == 200
    for connection in idle:
        connection.close()


def test_who_leaves_in_the_middle(server: LoopbackServer, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        connection = socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20)
        connection.sendall(get(server, f"/{server.token}/a/trace.bin").encode())
        connection.recv(10)
        connection.close()
    assert ask(server, get(server, f"/{server.token}/"))[0] == 200
    assert capfd.readouterr() == ("", "")
