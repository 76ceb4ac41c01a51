"""Steps are seen while a schedule runs: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof

SCRIPT = """
import sys, time
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

device = SimDevice()
with cuptiprof.profile(device="sim", schedule=cuptiprof.schedule(1, 1, 2, 1), on_ready=lambda p: print("ready")) as prof:
    for step in range(6):
        device.launch("k")
        time.sleep(0.11)
        prof.step()
print("done", file=sys.stderr)
"""


def test_on_a_terminal(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(SCRIPT)
    ours, theirs = pty.openpty()
    done = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        seen += piece
    os.close(ours)
    out, _ = done.communicate(timeout=60)
    assert done.returncode == 0 and out == "ready\n"
    text = seen.decode()
    for said in ("step 1, warming up", "step 2, recording", "step 3, recording, last of its cycle", "1 cycle finished"):
        assert said in text
    assert text.count("\n") == 1 and text.split("\x1b[2K")[-1] == "done\r\n"  # the line is gone at the end


def test_nowhere_else(capfd: pytest.CaptureFixture[str]) -> None:
    with cuptiprof.profile(device="sim", schedule=cuptiprof.schedule(1, 0, 1)) as prof:
        for _ in range(3):
            prof.step()
    assert capfd.readouterr() == ("", "")


def test_when_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    with cuptiprof.profile(device="sim", schedule=cuptiprof.schedule(0, 0, 9), progress=True) as prof:
        prof.step()
    assert "step 1, recording" in capfd.readouterr().err


def test_a_schedule_by_position() -> None:
    at, named = cuptiprof.schedule(1, 1, 3), cuptiprof.schedule(wait=1, warmup=1, active=3)
    assert [at(i) for i in range(20)] == [named(i) for i in range(20)]
