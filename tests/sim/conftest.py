"""What tests of several files here share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with the benchmarks of the test's module (its ``FILE``)."""
    (tmp_path / "bench_it.py").write_text(request.module.FILE)
    return tmp_path
