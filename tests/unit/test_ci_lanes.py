"""Lanes of .ci/steps.sh: what runs beside each other, and that nothing of it is left when the run ends, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

STEPS = Path(__file__).resolve().parents[2] / ".ci" / "steps.sh"

LANES = """
set -euo pipefail
. "$1"
quick() { step "first" echo one; step "second" echo two; }
slower() { quick; sleep 0.5; }
broken() { step "breaks" sh -c 'sleep 0.2; exit 7'; step "later" echo never; }
endless() { step "waits" sh -c 'echo $$ > "$0"; exec sleep 600' "$PIDS"; }
stubborn() { step "waits" sh -c 'sleep 600 & echo $! > "$0"; wait' "$PIDS"; }  # what a shell starts with & ignores Ctrl-C
shift
in_lanes "$@"
echo all done
"""


def begin(folder: Path, *lanes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "-c", LANES, "lanes", str(STEPS), *lanes],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PIDS": str(folder / "pid"), "TMPDIR": str(folder)},
    )


def runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return False


def pid_in(folder: Path) -> int:
    """The process that the endless lane has started, once it has."""
    file = folder / "pid"
    for _ in range(600):
        if file.exists() and (text := file.read_text()).endswith("\n"):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the lane did not begin")


def test_each_lane_is_printed_whole(tmp_path: Path) -> None:
    out, _ = (process := begin(tmp_path, "quick", "slower")).communicate(timeout=60)
    assert process.returncode == 0 and out.endswith("all done\n")
    for lane in ("quick", "slower"):
        own = out.partition(f"======== {lane}\n")[2].splitlines()
        assert [own[1], own[4]] == ["one", "two"]
        assert f"[{lane}] {own[0]}" in out  # said when it began
    assert list(tmp_path.iterdir()) == []


def test_the_first_failure_ends_the_run(tmp_path: Path) -> None:
    out, _ = (process := begin(tmp_path, "stubborn", "broken")).communicate(timeout=60)
    assert process.returncode == 7
    assert "======== broken failed with status 7" in out.splitlines()[-1]
    assert "never" not in out and "all done" not in out
    assert not runs(pid_in(tmp_path))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_end_from_outside_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    process = begin(tmp_path, "endless", "quick")
    pid = pid_in(tmp_path)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == 128 + how
    assert not runs(pid)
