"""Runs the probe in a child process and says what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 60.0
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from cuptiprof.doctor.trial import main; main({})"


@dataclass
class Outcome:
    """What the child reported.

    Attributes:
        steps: data of each step that ended.
        died_in: the step in which it ended before its time; "": it did not.
        death: how, for people: "was killed by SIGSEGV", "did not answer for 60 s", ...
    """

    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    died_in: str = ""
    death: str = ""

    def get(self, step: str) -> dict[str, Any]:
        """Data of a step; empty when it was not reached."""
        return self.steps.get(step, {})


def run_probe(device: str, loaded: str, timeout_s: float = TIMEOUT_S) -> Outcome:
    """Run ``probe.main`` in a fresh interpreter with this one's module path and environment."""
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as errors:
        arguments = f"{device!r}, {loaded!r}, {report.fileno()}"
        command = [sys.executable or "python3", "-c", _CODE.format(arguments), json.dumps(sys.path)]
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(report.fileno(),),
                start_new_session=True,
            )
        except OSError as e:
            return Outcome(died_in="start", death=f"could not be started: {e}")
        status: int | None = None
        try:
            status = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if status is None:
                _kill(child)
        report.seek(0)
        outcome, unfinished = _read(report.read())
        if status is None:
            outcome.died_in, outcome.death = unfinished or "exit", f"did not answer for {timeout_s:g} s"
        elif status != 0 or unfinished:
            errors.seek(0)
            last = errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()[-1:]
            outcome.died_in = unfinished or "exit"
            outcome.death = _death(status) + (f": {last[0]}" if last else "")
        return outcome


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(5)  # one that is stuck in the kernel driver cannot be killed


def _read(lines: bytes) -> tuple[Outcome, str]:
    outcome, unfinished = Outcome(), "start"
    for line in lines.splitlines():
        try:
            message = json.loads(line)
        except ValueError:  # cut off by a crash
            break
        if "data" in message:
            outcome.steps[message["step"]] = message["data"]
            unfinished = ""
        else:
            unfinished = message["step"]
    return outcome, unfinished


def _death(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
