"""``cuptiprof bench`` as tests run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with the benchmarks of the test's module (its ``FILE``)."""
    (tmp_path / "bench_it.py").write_text(request.module.FILE)
    return tmp_path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cuptiprof", "bench", *map(str, arguments)]


def bench(folder: Path, *arguments: object, sim: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it in a folder, with more in its environment. `sim`: on the simulated device, unless the arguments name one or results are
    only read."""
    named = "--device" in arguments or str(arguments[0]).endswith(".jsonl")
    device = ["--device", "sim"] if sim and not named else []
    return subprocess.run(
        command(*arguments, *device),
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=280,
    )
