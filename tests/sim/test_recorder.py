"""The recorder that is always on: triggers, what is saved, and that the program goes on whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.errors import CuptiprofError
from cuptiprof.flight_recorder.beside_dump import dumps_of
from cuptiprof.flight_recorder.recorder import recorder
from cuptiprof.flight_recorder.snapshot_files import snapshots_in
from cuptiprof.flight_recorder.triggers import OnFile, OnSignal, OnSocket, SlowStep, Trigger, When
from cuptiprof.io.collective_dump import read_collective_dumps
from cuptiprof.sim.sim_device import SimDevice


@pytest.fixture
def device() -> SimDevice:
    return SimDevice()


def launch(device: SimDevice, name: str, count: int = 10) -> None:
    for _ in range(count):
        device.launch(name)
    device.synchronize()


def recording(folder: Path, *on: Trigger | str, **more: Any) -> recorder:
    return recorder(**{"device": "sim", "folder": folder, "on": on, "at_most_every": 0, **more})


def waited(condition: Any, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


def test_asked_for(device: SimDevice, tmp_path: Path) -> None:
    with recording(tmp_path) as rec:
        launch(device, "a")
        first = rec.trigger("looks slow: why?")
        launch(device, "b", 3)
        second = rec.trigger()
        launch(device, "c", 2)
    assert [path.name.split("-")[4:] for path in (first, second)] == [
        ["looks", "slow", "why.cuptiprof"],
        ["asked.cuptiprof"],
    ]
    early, late = cuptiprof.open(first), cuptiprof.open(second)
    assert len(early.kernels) == 10 and len(late.kernels) == 13 and late.simulated
    assert early.metadata["reason"] == "looks slow: why?"
    assert (rec.counts.fired, rec.counts.saved, rec.counts.failed) == (2, 2, 0)
    assert snapshots_in(tmp_path) == [first, second]


def test_only_the_last_seconds(device: SimDevice, tmp_path: Path) -> None:
    with recording(tmp_path, seconds=0.5) as rec:
        launch(device, "long ago")
        time.sleep(0.8)
        launch(device, "just now", 4)
        taken = cuptiprof.open(rec.trigger())
    assert set(taken.kernels["name"]) == {"just now"} and len(taken.kernels) == 4 and len(taken.devices) == 1
    span = taken.metadata["stop_time_ns"] - taken.metadata["start_time_ns"]
    assert span == pytest.approx(0.5e9, rel=1e-6)


def test_only_the_last_steps(device: SimDevice, tmp_path: Path) -> None:
    with recording(tmp_path, steps=2) as rec:
        for i in range(5):
            launch(device, f"step_{i}", 2)
            rec.step()
        taken = cuptiprof.open(rec.trigger())
    # The fifth, and the one that began after it.
    assert set(taken.kernels["name"]) == {"step_4"}


def test_a_slow_step(device: SimDevice, tmp_path: Path) -> None:
    trigger = SlowStep()
    fired: list[str] = []
    for _ in range(30):
        trigger.step(10_000_000, fired.append)
    trigger.step(14_000_000, fired.append)  # beyond the fence of equal steps, not 1.5 times the median
    assert fired == []
    trigger.step(16_000_000, fired.append)
    assert fired == ["slow step: 16.0 ms, median 10.0 ms"]
    limited = SlowStep(limit_ms=5)
    limited.step(5_000_001, fired.append)
    assert fired[1:] == ["slow step: 5.0 ms"]

    with recording(tmp_path, SlowStep(limit_ms=100)) as rec:
        rec.step()
        time.sleep(0.15)
        rec.step()
        assert waited(lambda: rec.counts.saved == 1)
    (path,) = snapshots_in(tmp_path)
    assert "slow-step" in path.name


def test_a_signal(device: SimDevice, tmp_path: Path) -> None:
    others: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: others.append(number))
    try:
        with recording(tmp_path, OnSignal()) as rec:
            launch(device, "a")
            os.kill(os.getpid(), signal.SIGUSR1)
            assert waited(lambda: rec.counts.saved == 1)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert others == [signal.SIGUSR1] * 2  # called after ours, and alone again
        refused: list[BaseException] = []

        def elsewhere() -> None:
            try:
                recording(tmp_path, OnSignal()).start()
            except CuptiprofError as e:
                refused.append(e)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert "main thread" in str(refused[0])
        recording(tmp_path).start().stop()  # nothing stayed on
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_file(device: SimDevice, tmp_path: Path) -> None:
    asked = tmp_path / "snapshot-please"
    with recording(tmp_path / "out", OnFile(asked)) as rec:
        for count in (1, 2):
            asked.touch()
            assert waited(lambda count=count: rec.counts.saved == count) and not asked.exists()


def test_a_socket(device: SimDevice, tmp_path: Path) -> None:
    listening = OnSocket()

    def say(line: bytes) -> bytes:
        with socket.create_connection(listening.address, timeout=5) as connection:
            connection.sendall(line)
            return connection.recv(100)

    with recording(tmp_path, listening) as rec:
        assert listening.address[0] == "127.0.0.1"
        for wrong in (b"hello\n", b"\n", b"x" * 5000, listening.token[:-1].encode() + b"\n"):
            assert say(wrong) == b"no\n"
        assert rec.counts.fired == 0
        assert say(listening.token.encode() + b" slow since noon\n") == b"ok\n"
        assert waited(lambda: rec.counts.saved == 1)
    (path,) = snapshots_in(tmp_path)
    assert cuptiprof.open(path).metadata["reason"] == "asked: slow since noon"
    with pytest.raises(OSError):
        say(b"anybody?\n")


def test_a_condition(device: SimDevice, tmp_path: Path) -> None:
    seen: list[float] = []

    def busy(now: Any) -> str | bool:
        seen.append(now["launches_per_second"])
        return f"{now['launches_per_second']:.0f} launches a second" if now["launches_per_second"] > 50 else False

    def broken(now: Any) -> bool:
        raise RuntimeError("mine")

    with recording(tmp_path, When(busy), When(broken)) as rec:
        assert waited(lambda: len(seen) >= 2)
        assert rec.counts.saved == 0
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            launch(device, "a", 10)
        assert waited(lambda: rec.counts.saved == 1)
        assert "RuntimeError: mine" in rec.counts.error
    assert rec.counts.saved == 1  # once, however long it was so


def test_an_exception(tmp_path: Path) -> None:
    """The program ends with it: what came before is written first, and what it prints is what Python prints."""
    code = """
        import sys, threading
        import cuptiprof
        from cuptiprof.flight_recorder.recorder import recorder
        from cuptiprof.flight_recorder.triggers import UncaughtException
        from cuptiprof.sim.sim_device import SimDevice

        device = SimDevice()
        rec = recorder(device="sim", folder=sys.argv[1], on=[UncaughtException()], at_most_every=0).start()
        device.launch("before")
        device.synchronize()
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        if sys.argv[2] == "with":
            rec.stop()
            with recorder(device="sim", folder=sys.argv[1], on=[UncaughtException()], at_most_every=0):
                raise KeyError("mine")
        raise KeyError("mine")
    """
    for how in ("bare", "with"):
        folder = tmp_path / how
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), str(folder), how], capture_output=True, text=True
        )
        assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr and "ZeroDivisionError" in done.stderr
        names = [path.name for path in snapshots_in(folder)]
        assert len(names) == 2 and "zerodivisionerror" in names[0] and "keyerror" in names[1], done.stderr
        assert set(cuptiprof.open(snapshots_in(folder)[0]).kernels["name"]) == {"before"}


def test_a_thousand_triggers(device: SimDevice, tmp_path: Path) -> None:
    """Whoever asks while one is written, or too soon, is counted; the folder keeps the newest."""

    class Impatient(Trigger):
        def arm(self, fire: Any) -> None:
            self.fire = fire

    impatient = Impatient()
    with recording(tmp_path, impatient, most=3, at_most_every=0.2) as rec:
        launch(device, "a")

        def ask() -> None:
            for _ in range(250):
                impatient.fire("again")

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert waited(lambda: rec.counts.saved + rec.counts.too_soon == 1000)
        for _ in range(5):
            rec.trigger()
    assert rec.counts.failed == 0 and 1 <= rec.counts.saved - 5 <= 100
    kept = snapshots_in(tmp_path)
    assert len(kept) == 3 and all(len(cuptiprof.open(path).kernels) == 10 for path in kept)


def test_killed_in_between(tmp_path: Path) -> None:
    """kill -9 at any moment: every snapshot that has its name opens."""
    code = """
        import sys
        from cuptiprof.flight_recorder.recorder import recorder
        from cuptiprof.sim.sim_device import SimDevice

        device = SimDevice()
        rec = recorder(device="sim", folder=sys.argv[1], at_most_every=0, most=50).start()
        for _ in range(20_000):
            device.launch("a")
        device.synchronize()
        print("ready", flush=True)
        while True:
            rec.trigger("again and again")
    """
    for i in range(4):
        folder = tmp_path / str(i)
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        assert waited(lambda folder=folder: len(snapshots_in(folder)) >= 2, 20)
        time.sleep(0.013 * i)
        process.kill()
        process.wait()
        process.stdout.close()
        for path in snapshots_in(folder):
            assert len(cuptiprof.open(path).kernels) == 20_000


def test_a_disk_that_is_full(device: SimDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, path: Any, **unused: Any) -> None:
        raise cuptiprof.errors.ResultError("no space left on device")

    with recording(tmp_path, SlowStep(limit_ms=0)) as rec:
        monkeypatch.setattr(cuptiprof.Result, "save", full)
        rec.step()
        assert waited(lambda: rec.counts.failed == 1) and "no space" in rec.counts.error
        with pytest.raises(CuptiprofError, match="no space"):
            rec.trigger()
        monkeypatch.undo()
        assert len(cuptiprof.open(rec.trigger()).kernels) == 0


def test_not_running(tmp_path: Path) -> None:
    with pytest.raises(CuptiprofError, match="does not run"):
        recording(tmp_path).trigger()
    with pytest.raises(CuptiprofError, match="seconds"):
        recording(tmp_path, seconds=0)
    rec = recording(tmp_path).start()
    rec.stop()
    with pytest.raises(CuptiprofError, match="does not run"):
        rec.trigger()
    (tmp_path / "a file").touch()
    with pytest.raises(CuptiprofError, match="a file"):
        recording(tmp_path / "a file" / "folder").start()
    recording(tmp_path).start().stop()


def test_memory_stays_flat(device: SimDevice, tmp_path: Path) -> None:
    """The window is the budget's: rows go, whatever is asked."""
    with recording(tmp_path, seconds=None, budget="32 MB", most=1) as rec:
        held = []
        for _ in range(6):
            launch(device, "a", 150_000)
            held.append(rec._session.counts()["live_bytes"])
            rec.trigger()
        taken = rec.stop()
    assert max(held) <= 32 << 20 and held[-1] > 8 << 20
    assert taken.losses["budget_evicted"] > 0
    ids = taken.kernels["correlation_id"].astype(np.int64)
    assert ids.max() - ids.min() < 3 * len(ids)


def test_windows_where_the_bound_is_passed(device: SimDevice, tmp_path: Path) -> None:
    """A launch is said to cost 10 ms: a few of them pass the bound, whatever the machine does."""
    seen: list[float] = []

    def looks(now: Any) -> bool:
        seen.append(now["launches_per_second"])
        return False

    with recording(tmp_path, When(looks), max_overhead_pct=20, launch_ns=10e6) as rec:
        assert rec._gate.was_open_since(time.perf_counter())
        launch(device, "seen", 300)
        rec.step()
        assert waited(lambda: rec._session.state == "paused")
        seen.clear()
        launch(device, "not seen", 50)
        taken = cuptiprof.open(rec.trigger())
        rec.step()
        assert waited(lambda: bool(seen))
        assert np.isnan(seen).all()  # nobody knows
    assert set(taken.kernels["name"]) == {"seen"} and len(taken.kernels) == 300
    assert rec.counts.windows == 1
    ((begin, end),) = taken.metadata["unobserved_ns"]
    assert taken.metadata["start_time_ns"] < begin < end <= taken.metadata["stop_time_ns"]
    said = taken.metadata["overhead"]
    assert said["max_pct"] == 20 and said["launch_ns"] == 10e6 and said["launches_s"] == pytest.approx(3.0)
    assert said["pct"] > 20 and said["decoder_s"] > 0
    assert "Not observed" in str(taken.report("overview"))
    share = [row["metadata"] for row in taken.markers.rows() if row["category"] == "step"]
    assert share[0] == "" and share[1].startswith('{"observed": 0')
    # It goes on when the bound has room again; the cost so far is forgotten with a clock that has run on.
    assert rec._bound is not None
    assert rec._bound.look(rec._bound.until + 100, rec._bound.spent)


def test_the_program_pauses_too(device: SimDevice, tmp_path: Path) -> None:
    with recording(tmp_path, max_overhead_pct=50) as rec:
        with rec.paused():
            launch(device, "evaluation")
            with rec.paused():
                rec._gate.set_open(False)
            launch(device, "evaluation")
            rec._gate.set_open(True)
            assert rec._session.state == "paused"
        assert rec._session.state == "running"
        launch(device, "training", 3)
        rec._gate.set_open(False)
        with rec.paused():
            assert rec._session.state == "paused"
        assert rec._session.state == "paused"
        left = rec.stop()
    assert set(left.kernels["name"]) == {"training"} and len(left.metadata["unobserved_ns"]) == 2
    assert left.metadata["overhead"]["launch_ns"] > 0
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(CuptiprofError, match="max_overhead_pct"):
            recording(tmp_path, max_overhead_pct=wrong)
    with pytest.raises(CuptiprofError, match="launch_ns"):
        recording(tmp_path, launch_ns=-1)


def test_thresholds_as_texts(device: SimDevice, tmp_path: Path) -> None:
    with recording(tmp_path, "launches_per_second>1", "kernel_time[gemm]>1ns", "system.process_cpu>0%") as rec:
        end = time.monotonic() + 20
        while rec.counts.saved < 3 and time.monotonic() < end:
            launch(device, "gemm", 10)
            time.sleep(0.02)
        left = rec.stop()
    assert rec.counts.saved == 3 and rec.counts.fired == 3  # each of them once
    reasons = [str(cuptiprof.open(path).metadata["reason"]) for path in snapshots_in(tmp_path)]
    assert sorted(reason.split("(")[0].split()[1] for reason in reasons) == [
        "kernel_time[gemm]>1ns", "launches_per_second>1", "system.process_cpu>0%",
    ]  # fmt: skip
    assert len(left.system_samples)
    with pytest.raises(CuptiprofError, match="METRIC"):
        recording(tmp_path, on="gpu_busy")
    with pytest.raises(CuptiprofError, match="memory") as refused:
        recording(tmp_path, on=["memory>1GB"])
    assert "activities=" in refused.value.hint
    with pytest.raises(CuptiprofError, match="no trigger"):
        recording(tmp_path, on=[3])


def test_the_dump_of_torch_beside_a_snapshot(
    device: SimDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    dist = torch.distributed
    with recording(tmp_path / "before") as rec:
        assert not dumps_of(rec.trigger()).exists()  # no process group
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        dist.all_reduce(torch.ones(3))
        with recording(tmp_path / "with", most=1) as rec:
            launch(device, "a")
            first, second = rec.trigger(), rec.trigger()
            (dump,) = read_collective_dumps(dumps_of(second))
            assert dump.rank == 0 and dump.entries[-1].operation == "all_reduce" and dump.entries[-1].frames
            assert not first.exists() and not dumps_of(first).exists()
            assert snapshots_in(tmp_path / "with") == [second] and len(cuptiprof.open(second).kernels) == 10

            def broken() -> bytes:
                raise RuntimeError("NCCL is gone")

            monkeypatch.setattr(torch._C._distributed_c10d, "_dump_fr_trace", broken)
            assert len(cuptiprof.open(rec.trigger()).kernels) == 10 and "NCCL is gone" in rec.counts.error
    finally:
        dist.destroy_process_group()
