"""``cuptiprof view``: what it says, opens and leaves behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from report_results import training_step
from watched_programs import command, environment, until

View = Callable[..., tuple["subprocess.Popen[str]", str]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    training_step().save(tmp_path / "step.cuptiprof")
    return tmp_path / "step.cuptiprof"


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    """Starts it; gives the process and the address it says."""
    started = []
    (tmp_path / "tmp").mkdir()

    def start(*words: str | Path, **env: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            command("view", *map(str, words)),
            env=environment(TMPDIR=str(tmp_path / "tmp"), **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_the_page_until_it_is_ended(run: Path, view: View, tmp_path: Path, end: signal.Signals) -> None:
    process, url = view(run, "--no-browser")
    with urllib.request.urlopen(url, timeout=30) as answer:
        page = answer.read().decode()
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "<title>step.cuptiprof" in page and "Content-Security-Policy" in page
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url + "run.json", timeout=30)
    process.send_signal(end)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and err == "" and out.strip() in ("", "Ctrl-C ends it.")
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=5)


def test_two_runs_are_beside_each_other(run: Path, view: View, tmp_path: Path) -> None:
    training_step().save(tmp_path / "after.cuptiprof")
    _, url = view(run, tmp_path / "after.cuptiprof", "--no-browser")
    with urllib.request.urlopen(url, timeout=30) as answer:
        page = answer.read().decode()
    assert "<title>step.cuptiprof and after.cuptiprof" in page
    assert page.index('id="data-diff"') < page.index('id="data-overview"') < page.index('id="data-1-overview"')


def test_the_secret_is_not_on_a_command_line(run: Path, view: View, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\n')
    browser.chmod(0o755)
    _, url = view(run, BROWSER=str(browser))
    token = url.split("/")[3]
    called = tmp_path / "called"
    until(lambda: called.exists() and called.read_text().endswith("\n"))
    words = called.read_text().strip()
    assert words.startswith("file://") and token not in words
    way = Path(words.removeprefix("file://"))
    assert stat.S_IMODE(way.stat().st_mode) == 0o600 and stat.S_IMODE(way.parent.stat().st_mode) == 0o700
    assert f"url={url}" in way.read_text()


def test_without_a_browser_the_address_is_enough(run: Path, view: View) -> None:
    process, url = view(run, BROWSER="/bin/false", DISPLAY="", WAYLAND_DISPLAY="")
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["no-such-run"], 1, "no-such-run"),
        ([], 2, "RUN_OR_TRACE"),
        (["RUN", "--no-brower"], 2, "did you mean --no-browser"),
        (["RUN", "RUN", "--perfetto", "--no-browser"], 1, "--perfetto shows one run"),
        (["RUN", "RUN", "RUN"], 2, "unrecognized arguments"),
    ],
)
def test_what_cannot_be(run: Path, words: list[str], status: int, said: str) -> None:
    words = [str(run) if word == "RUN" else word for word in words]
    done = subprocess.run(command("view", *words), env=environment(), capture_output=True, text=True, timeout=100)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr


def test_without_viztracer(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "viztracer.py").touch()  # in its place, without a UI
    path = os.pathsep.join(filter(None, [str(tmp_path / "empty"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command("view", str(run), "--perfetto"), env=environment(PYTHONPATH=path), capture_output=True, text=True
    )
    assert done.returncode == 1 and "pip install 'cuptiprof[perfetto]'" in done.stderr
