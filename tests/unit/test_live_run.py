"""``cuptiprof run --live``: on a terminal, in a log, interrupted."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from watched_programs import PROGRAM, OnTerminal, command, environment


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_numbers_stand_below_what_the_program_prints(program: str) -> None:
    shown = OnTerminal(command("run", "--live", "-q", program, "2.5"), environment())
    shown.read_until(lambda: "gemm" in "".join(shown.screen.text))
    top, bottom = shown.screen.scrolls
    assert (top, bottom) == (0, 11)
    shown.read_until(lambda: shown.screen.text[bottom - 1].startswith("line "))
    text = shown.screen.text
    above, panel = text[: bottom + 1], text[bottom + 1 :]
    assert all(not line or line.startswith("line ") for line in above)
    assert panel[0].startswith("cuptiprof:  ") and "(SIMULATED)  program.py 2.5" in panel[0]
    assert any(line.endswith("  gemm") for line in panel) and any(line.endswith("  train") for line in panel)
    assert shown.wait() == 0
    assert shown.screen.scrolls == (0, 23)
    left = [line for line in shown.screen.text if line]
    assert left[-1].startswith("done ") and all(line.startswith(("line ", "done ")) for line in left)
    printed = [line for line in shown.raw.replace("\r", "").split("\n") if "line" in line]
    numbers = [int(line.rsplit("line ", 1)[1].split("\x1b")[0]) for line in printed]
    assert numbers == list(range(20, 20 * len(numbers) + 1, 20))  # none is lost or broken


def test_the_terminal_becomes_smaller(program: str) -> None:
    shown = OnTerminal(command("run", "--live", "-q", program, "4"), environment())
    shown.read_until(lambda: shown.screen.scrolls == (0, 11))
    shown.resize(16, 60)
    shown.screen.rows = 16  # lines below are beyond the terminal
    shown.read_until(lambda: shown.screen.scrolls == (0, 7))
    shown.resize(7, 60)
    before = len(shown.raw)
    shown.read_until(lambda: "done" in shown.raw[before:])
    assert shown.raw[before:].count("cuptiprof:  ") <= 1  # no room: at most the one that was on its way
    assert shown.wait() == 0


def test_ctrl_c_ends_the_program_as_without_it(program: str) -> None:
    shown = OnTerminal(command("run", "--live", program, "60"), environment())
    shown.read_until(lambda: "gemm" in "".join(shown.screen.text))
    shown.type("\x03")
    assert shown.wait() == -signal.SIGINT
    assert "KeyboardInterrupt" in shown.raw and "Top kernels" in shown.raw
    assert shown.screen.scrolls == (0, 23)
    assert shown.raw.rindex("\x1b[r") < shown.raw.index("Top kernels")


def test_lines_where_there_is_no_terminal(program: str) -> None:
    done = subprocess.run(
        command("run", "--live", "-q", program, "2.2"), env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0 and "\x1b" not in done.stderr and "cuptiprof" not in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) >= 2 and all(line.startswith("cuptiprof: ") for line in lines), done.stderr
    assert "launches/s" in lines[0] and "most: gemm" in lines[0] and lines[-1].startswith("cuptiprof: ended after")


def test_standard_error_is_closed(program: str) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *command("run", "--live", "-q", program, "0.2")],
        env=environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "done" in done.stdout


def test_not_with_application_replay(program: str) -> None:
    done = subprocess.run(
        command("run", "--live", "--metrics", "ipc", "--replay-mode", "application", program),
        env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "--live and --replay-mode application do not go together" in done.stderr
