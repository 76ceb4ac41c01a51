"""``import cuptiprof`` where the compiled part is not: the message says what happened and what to do."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof


@pytest.mark.parametrize("what", ["checkout", "other python", "broken"])
def test_the_compiled_part_is_missing(what: str, tmp_path: Path) -> None:
    package = Path(cuptiprof.__file__).parent
    shutil.copytree(
        package, tmp_path / "cuptiprof", ignore=shutil.ignore_patterns("*.so", "__pycache__", "lists", "traces")
    )
    if what == "checkout":
        (tmp_path / "pyproject.toml").write_text("[project]\n")
    if what == "other python":
        (tmp_path / "cuptiprof" / "_core.cpython-309-x86_64-linux-gnu.so").write_bytes(b"")
    # -S: the installed package is not seen, as it would not be before the folder of a script.
    code = "import sys; sys.path[:0] = [sys.argv[1]]; import cuptiprof"
    done = subprocess.run([sys.executable, "-S", "-c", code, str(tmp_path)], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-2:]
    assert done.returncode == 1 and last[0].startswith("ImportError: cuptiprof") and last[1].startswith("  hint: ")
    assert {"checkout": "source folder", "other python": "another Python", "broken": "lacks its compiled part"}[
        what
    ] in last[0]
    assert "pip install" in last[1] and str(tmp_path) in last[0]
    assert "During handling" not in done.stderr


def test_an_ordinary_install_can_save_and_print() -> None:
    """Parquet is the format of a saved run and rich what a terminal gets: neither is an extra."""
    always = {r.split(">=")[0] for r in importlib.metadata.requires("cuptiprof") or () if "extra ==" not in r}
    assert {"pyarrow", "rich", "numpy", "msgspec"} <= always
