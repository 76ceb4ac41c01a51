"""``cuptiprof top`` and the socket it connects to."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from watched_programs import PROGRAM, OnTerminal, command, environment, made_up, until

import cuptiprof
from cuptiprof.errors import SessionError
from cuptiprof.sim.sim_device import SimDevice
from cuptiprof.watch.live_endpoint import MOST_WATCHERS, LiveEndpoint
from cuptiprof.watch.live_figures import LiveFigures
from cuptiprof.watch.live_watcher import LiveWatcher, the_only_one, watchable


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def running(runtime: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that can be watched for a minute."""
    path = runtime / "program.py"
    path.write_text(PROGRAM)
    with subprocess.Popen(
        command("run", "--live-remote", "-q", str(path), "60"),
        env=environment(runtime),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "line 20\n"
        yield process
        process.kill()


def test_lines_of_the_only_session_there_is(running: subprocess.Popen[str], runtime: Path) -> None:
    with subprocess.Popen(command("top"), env=environment(runtime), stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        lines = [top.stdout.readline(), top.stdout.readline()]
        assert all("launches/s" in line and "most: gemm" in line and "(SIMULATED)" in line for line in lines)
        running.send_signal(signal.SIGINT)
        assert "ended after" in top.stdout.readlines()[-1]
        assert top.wait(60) == 0
    assert not list((runtime / "cuptiprof").iterdir())


def test_on_a_terminal(running: subprocess.Popen[str], runtime: Path) -> None:
    shown = OnTerminal(command("top", str(running.pid)), environment(runtime, TERM="xterm"))
    shown.read_until(lambda: shown.raw.count("gemm") >= 2)
    assert "\x1b[?1049h" in shown.raw  # a screen of its own
    assert "program.py 60" in shown.raw
    shown.type("\x03")
    assert shown.wait() == 0
    assert "\x1b[?1049l" in shown.raw and "Traceback" not in shown.raw
    assert "gemm" in shown.raw[shown.raw.rindex("\x1b[?1049l") :]  # the last numbers stay
    assert running.poll() is None


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 1, "no session of yours can be watched"),
        (["999999999"], 1, "it has no session to watch"),
        (["train.py"], 2, "is no number of a process"),
        (["--pid", "7"], 2, "unrecognized arguments"),
        (["--help"], 0, "Ctrl-C"),
    ],
)
def test_what_is_said_where_there_is_nothing(runtime: Path, words: list[str], status: int, said: str) -> None:
    done = subprocess.run(command("top", *words), env=environment(runtime), capture_output=True, text=True)
    assert done.returncode == status and said in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_the_socket_is_its_users_alone(sim: SimDevice, runtime: Path) -> None:
    with cuptiprof.profile(device="sim", live=True):
        folder = runtime / "cuptiprof"
        path = folder / f"{os.getpid()}.sock"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o600
        assert watchable() == [os.getpid()] and the_only_one() == os.getpid()
    assert not path.exists() and watchable() == []


def test_without_a_runtime_folder(sim: SimDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with cuptiprof.profile(device="sim", live=True):
        assert (tmp_path / f"cuptiprof-{os.geteuid()}" / f"{os.getpid()}.sock").is_socket()


@pytest.mark.parametrize("what", ["open to others", "a link", "a file"])
def test_a_folder_that_others_could_have_made_is_refused(sim: SimDevice, runtime: Path, what: str) -> None:
    folder = runtime / "cuptiprof"
    if what == "open to others":
        folder.mkdir()
        folder.chmod(0o755)
    elif what == "a link":
        (runtime / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(runtime / "elsewhere")
    else:
        folder.touch()
    prof = cuptiprof.profile(device="sim", live=True)
    with pytest.raises(SessionError):
        prof.start()
    assert prof.state in ("idle", "stopped")
    with cuptiprof.profile(device="sim") as other:  # nothing is left switched on
        sim.launch("k")
    assert len(other.result().kernels) == 1
    with pytest.raises(SessionError):
        LiveWatcher(os.getpid())


def test_a_path_too_long(sim: SimDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with pytest.raises(SessionError, match="too long"):
        cuptiprof.profile(device="sim", live=True).start()


def test_several_watch_and_one_does_not_read(sim: SimDevice, runtime: Path) -> None:
    with cuptiprof.profile(device="sim", live=True) as prof:
        watchers = [LiveWatcher(os.getpid()) for _ in range(3)]
        sim.launch("k", count=30)
        for watcher in watchers[:2]:
            figures = next(iter(watcher))
            assert {k.name: k.count for k in figures.kernels} == {"k": 30}
    assert len(prof.result().kernels) == 30
    assert next(iter(watchers[2])).launches == 30  # what was sent to it is still there


def test_who_does_not_read_is_left_out(runtime: Path) -> None:
    endpoint = LiveEndpoint()
    reader = socket.socket(socket.AF_UNIX)
    reader.connect(str(endpoint.path))
    assert endpoint.accept() is not None
    line = msgspec.json.encode(made_up()) + b"\n"
    gone: list[socket.socket] = []
    began = time.monotonic()
    while not gone:
        gone = endpoint.send(line)
        assert time.monotonic() - began < 30
    assert endpoint.watchers == []
    endpoint.close()
    reader.close()


def test_no_more_than_so_many_watch(runtime: Path) -> None:
    endpoint = LiveEndpoint()
    sockets = []
    for i in range(MOST_WATCHERS + 1):
        sockets.append(socket.socket(socket.AF_UNIX))
        sockets[-1].connect(str(endpoint.path))
        assert (endpoint.accept() is not None) == (i < MOST_WATCHERS)
    endpoint.close()
    for each in sockets:
        each.close()


def test_who_says_something_is_put_out(sim: SimDevice, runtime: Path) -> None:
    with cuptiprof.profile(device="sim", live=True), socket.socket(socket.AF_UNIX) as other:
        other.connect(str(runtime / "cuptiprof" / f"{os.getpid()}.sock"))
        other.sendall(b"GET / HTTP/1.1\r\n\r\n")
        other.settimeout(20)
        received = b"".join(iter(lambda: _receive(other), b""))
        assert received == b""


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("said", [b"no json\n", b"{}\n", b"[1, 2]\n", b"x" * (5 << 20), b"\xff\n"])
def test_what_is_no_figures_is_refused(runtime: Path, said: bytes) -> None:
    folder = runtime / "cuptiprof"
    folder.mkdir(mode=0o700)
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); c, _ = s.accept(); c.sendall(sys.stdin.buffer.read()); c.close()"
    path = folder / "77.sock"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as liar:
        until(path.exists)
        time.sleep(0.2)
        assert liar.stdin is not None
        with LiveWatcher(77) as watcher, pytest.raises(SessionError, match="no numbers of a session"):
            liar.stdin.write(said)
            liar.stdin.close()
            for _ in watcher:
                pass


def test_figures_survive_the_way() -> None:
    figures = made_up(losses={"pool_exhausted": 3})
    assert msgspec.json.decode(msgspec.json.encode(figures), type=LiveFigures) == figures


def test_a_killed_process_leaves_nothing_that_matters(running: subprocess.Popen[str], runtime: Path) -> None:
    running.kill()
    running.wait()
    path = runtime / "cuptiprof" / f"{running.pid}.sock"
    assert path.exists()
    assert watchable() == [] and not path.exists()


def test_a_forked_child_does_not_answer(sim: SimDevice, runtime: Path) -> None:
    with cuptiprof.profile(device="sim", live=True):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(write)
            os.read(read, 1)  # until the parent has stopped
            os._exit(0)
        os.close(read)
        assert watchable() == [os.getpid()]
    assert watchable() == []
    os.close(write)
    assert os.waitpid(pid, 0)[1] == 0
