"""keep="spill": what is left when sessions and processes end in every possible way."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import cuptiprof
from cuptiprof.errors import ResultError, SessionError
from cuptiprof.sim.sim_device import SimDevice

SCRIPT = """
import atexit, os, signal, sys, time
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice
sim, how = SimDevice(), sys.argv[1]
atexit.register(lambda: print("first", prof.state))
more = {"launch_skip": 1} if how == "kill" else {}
prof = cuptiprof.profile(device="sim", **more, keep="spill", budget="16 MB", spill_dir="spilled", activities=["kernel"])
prof.start()
if how == "stop at exit":
    atexit.register(lambda: print("kept", len(prof.stop().kernels)))
for i in range(60):
    sim.launch(f"k{i % 3}", count=5000, grid=(i + 1, 1, 1))
    time.sleep(0.01)
deadline = time.monotonic() + 20
while prof._spill.segments < 2 and time.monotonic() < deadline:
    sim.launch("more", count=5000)
    time.sleep(0.01)
time.sleep(0.3)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(5)
"""


def run(how: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT, how], cwd=folder, capture_output=True, text=True, timeout=100)


def launch_slowly(sim: SimDevice, name: str, launches: int) -> None:
    for _ in range(launches // 1000):
        sim.launch(name, count=1000)
        time.sleep(0.004)


@pytest.mark.parametrize("turn", range(3))
def test_a_process_ends_with_its_session_open(turn: int, tmp_path: Path) -> None:
    """Its exit status is its own, and what reached the disk is there."""
    done = run("exit", tmp_path)
    assert (done.returncode, done.stdout) == (5, "first running\n"), done.stderr
    assert len(cuptiprof.open(tmp_path / "spilled").kernels) > 10_000


def test_a_session_stopped_at_exit(tmp_path: Path) -> None:
    done = run("stop at exit", tmp_path)
    assert done.returncode == 5, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("kept ") and int(first.split()[1]) > 100_000 and second == "first stopped"
    assert list((tmp_path / "spilled").iterdir()) == []


def test_a_killed_process_left_its_stores(tmp_path: Path) -> None:
    """They open, and what is missing is counted: all launches are rows or losses."""
    assert run("kill", tmp_path).returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "spilled").iterdir()
    r = cuptiprof.open(tmp_path / "spilled")
    assert len(r.kernels) == len(set(r.kernels["correlation_id"])) > 10_000
    assert "k1" in set(r.kernels["name"]) and set(r.kernels["grid_x"]) >= {1, 2, 3}
    launched = r.metadata["launches"]["launches"]
    assert launched >= 300_000 and r.losses["unreconciled_launches"] > 0
    assert len(r.kernels) + r.losses["unreconciled_launches"] + r.losses["pool_exhausted"] >= launched
    assert "ended before its session was stopped" in str(r.summary()) and "was not applied" in r.metadata["note"]
    assert not r.metadata["arguments"]["kernels"] and r.metadata["simulated"]
    r.save(tmp_path / "saved")
    assert len(cuptiprof.open(tmp_path / "saved").kernels) == len(r.kernels)
    # A damaged store is left out and counted.
    store = sorted(f for f in folder.iterdir() if f.is_dir())[0]
    (store / "kernels.arrow").write_bytes(b"x")
    damaged = cuptiprof.open(folder)
    assert len(damaged.kernels) < len(r.kernels) and damaged.losses["spill_dropped"] > 1000
    assert str(store) in damaged.metadata["note"]
    lost = damaged.losses["spill_dropped"] + damaged.losses["unreconciled_launches"]
    others = len(r.devices) + len(r.contexts)
    assert len(damaged.kernels) + lost - others == len(r.kernels) + r.losses["unreconciled_launches"]
    for broken in ("{", "[]", '{"format": 99, "metadata": {}}'):
        (folder / "spill.json").write_text(broken)
        with pytest.raises(ResultError, match=r"spill|damaged"):
            cuptiprof.open(folder)


def test_several_spilled_runs_are_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"cuptiprof-spill-{name}").mkdir()
        (tmp_path / f"cuptiprof-spill-{name}" / "spill.json").write_text('{"format": 1, "metadata": {"pid": 0}}')
    with pytest.raises(ResultError, match="cuptiprof-spill-a, cuptiprof-spill-b"):
        cuptiprof.open(tmp_path)
    assert len(cuptiprof.open(tmp_path / "cuptiprof-spill-a").kernels) == 0


def test_a_forked_child_leaves_the_folder_alone(sim: SimDevice, tmp_path: Path) -> None:
    with cuptiprof.profile(
        device="sim", keep="spill", budget="16 MB", spill_dir=tmp_path, activities=["kernel"]
    ) as prof:
        launch_slowly(sim, "before", 150_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            child = os.fork()
        if child == 0:
            code = 1
            try:
                prof.__exit__(None, None, None)
                spill = prof._spill
                assert spill is not None and spill.folder is not None
                spill.end()
                spill.folder._finalizer()  # as at the end of the interpreter
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        launch_slowly(sim, "after", 50_000)
    r = prof.result()
    assert len(r.kernels) + r.losses["pool_exhausted"] == 200_000
    assert {"before", "after"} == set(r.kernels["name"])


def test_each_cycle_gets_its_own_kernels(sim: SimDevice, tmp_path: Path) -> None:
    results = []
    with cuptiprof.profile(
        device="sim", keep="spill", budget="16 MB", spill_dir=tmp_path, activities=["kernel"],
        schedule=cuptiprof.schedule(wait=0, warmup=1, active=1, repeat=3), on_ready=lambda p: results.append(p.result()),
    ) as prof:  # fmt: skip
        for step in range(6):
            launch_slowly(sim, f"k{step}", 110_000)
            prof.step()
        assert prof._spill is not None and prof._spill.segments >= 6
    assert [set(r.kernels["name"]) for r in results] == [{"k1"}, {"k3"}, {"k5"}]
    lost = [0, *(r.losses["pool_exhausted"] for r in results)]
    for i, r in enumerate(results):  # what the pool lost may be of the warm-up
        assert 110_000 - (lost[i + 1] - lost[i]) <= len(r.kernels) <= 110_000
    del results[:], r, prof
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("why", ["folder", "thread"])
def test_a_start_that_fails_leaves_nothing_on(
    why: str, sim: SimDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    prof = cuptiprof.profile(device="sim", keep="spill", spill_dir=tmp_path / ("file" if why == "folder" else "ok"))
    with monkeypatch.context() as patched:
        if why == "thread":

            def refuse(self: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises((ResultError, SessionError), match="cannot spill"), prof:
            pass
    assert prof.state == "idle"
    with cuptiprof.profile(device="sim") as next_one:
        sim.launch("k")
    assert len(next_one.result().kernels) == 1


def test_a_dropped_session_goes(sim: SimDevice, tmp_path: Path) -> None:
    for _ in range(5):
        cuptiprof.profile(device="sim", keep="spill", spill_dir=tmp_path).start()
        gc.collect()
        deadline = time.monotonic() + 5
        while list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert list(tmp_path.iterdir()) == []
        with cuptiprof.profile(device="sim") as prof:
            sim.launch("k")
        assert len(prof.result().kernels) == 1
    deadline = time.monotonic() + 5
    while any(t.name == "cuptiprof-spill" for t in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(t.name == "cuptiprof-spill" for t in threading.enumerate())
