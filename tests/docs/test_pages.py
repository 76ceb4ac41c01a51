"""Every page says what is so: its Python and its commands run on the simulated device, and print what stands below them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from page import PAGES, ROOT, blocks, same_output, unmarked_commands

RUNS = [
    name
    for name, path in PAGES.items()
    if any(b.language in ("python", "bash", "console") for b in blocks(path.read_text()))
]


@pytest.mark.parametrize("name", RUNS)
def test_what_a_page_shows_runs(name: str, tmp_path: Path) -> None:
    for source in (ROOT / "examples").glob("*.py"):
        (tmp_path / "examples").mkdir(exist_ok=True)
        shutil.copy(source, tmp_path / "examples")
    text = PAGES[name].read_text()
    for source in (*(Path(__file__).parent / "given").iterdir(), *(ROOT / "tests" / "data" / "ranks").glob("*.gz")):
        if source.name in text:  # no other: a page may report on its whole folder
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / source.name)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_page.py")), str(PAGES[name])],
        cwd=tmp_path,
        env={
            **os.environ,
            "CUPTIPROF_DEVICE": "sim",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "100",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]


@pytest.mark.parametrize("name", PAGES)
def test_commands_are_marked_as_such(name: str) -> None:
    assert unmarked_commands(PAGES[name].read_text()) == []


def test_numbers_may_differ_and_nothing_else() -> None:
    assert same_output("Time  12.5ms  a\n...\n3 end\n", "Time 7us a\n1 x\n2 y\n1 end\n")
    assert same_output("Time Calls\n12.5% 3 - a/b\n", "Time\n7% a/b\n")
    assert not same_output("Time  12.5ms  a\n", "Time 7us b\n")
    assert not same_output("1 one\n2 two\n", "1 one\n")
    assert not same_output("1 sgemm_32x32\n", "1 sgemm_64x64\n")
