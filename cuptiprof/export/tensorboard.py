"""``on_ready=`` handlers."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], Path]:
    """A handler for ``profile(on_ready=...)`` that writes each result as ``<worker>.<ns>.pt.trace.json[.gz]`` into a folder,
    where TensorBoard's plugin and HTA look for it. By torch.profiler's name and arguments.

    Raises (when called):
        ResultError: the file cannot be written.
    """

    def handler(prof: Any) -> Path:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        path = folder / f"{worker}.{time.time_ns()}.pt.trace.json{suffix}"
        prof.result().export(path)
        return path

    return handler
