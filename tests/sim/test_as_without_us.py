"""The user's program behaves as it would without a session: forks, signals, warnings, annotations, decorators."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import cuptiprof
from cuptiprof.errors import BudgetError, DeviceError, SessionError
from cuptiprof.session.assemble import EmptySelectionWarning
from cuptiprof.sim.sim_device import SimDevice

FORK = """
import os, sys
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice
sim, how = SimDevice(), sys.argv[1]

@cuptiprof.profile(device="sim")
def decorated():
    return os.fork()

with cuptiprof.profile(device="sim", keep=sys.argv[2]) as prof:
    sim.launch("k", count=10)
    pid = os.fork()
    if pid == 0:
        with cuptiprof.region("child"):
            pass
        if how == "exit":
            sys.exit(7)
        if how == "raise":
            raise ValueError("in the child")
        if how == "own":
            try:
                cuptiprof.profile(device="sim").start()
            except cuptiprof.CuptiprofError as e:
                print(e, flush=True)
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        sim.launch("k", count=5)
if pid:
    print(len(prof.result().kernels), flush=True)
    if decorated() == 0:
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.parametrize("keep", ["latest", "spill"])
@pytest.mark.parametrize("how,status", [("exit", 7), ("end", 0), ("raise", 1), ("own", 0)])
def test_a_fork_in_a_session(how: str, status: int, keep: str) -> None:
    """The child ends as it would; a session of its own is refused with a hint that can be followed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, how, keep], capture_output=True, text=True, timeout=100
    )
    *said, code, kernels, decorated = done.stdout.splitlines()
    assert (done.returncode, int(code), int(kernels), int(decorated)) == (0, status, 15, 0), done.stderr
    assert ("SessionError" in done.stderr) is False
    if how == "own":
        assert "forked from one whose cuptiprof session was running" in said[0] and "spawn" in said[1]


def test_a_child_forked_between_sessions_has_its_own(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        sim.launch("k")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with prof:
                sim.launch("k", count=3)
            code = len(prof.result().kernels)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Interrupts the main thread, as Ctrl-C does, in so many seconds."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def ran_without_torch(test: str) -> bool:
    """torch is here, whose own functions an interruption would leave half done: the test ran in a process without it."""
    if "torch" not in sys.modules:
        return False
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test}"]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()
    return True


# CPython swallows what is raised inside a destructor, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("keep", ["latest", "spill"])
def test_interruptions_at_any_moment(alarm: Callable[[float], None], sim: SimDevice, keep: str) -> None:
    """Nothing stays on, and what was collected is there as soon as it is asked for."""
    if ran_without_torch(f"test_interruptions_at_any_moment[{keep}]"):
        return
    import pandas  # noqa: F401  an import that is interrupted leaves a library half made, for all tests to come
    import pyarrow.parquet  # noqa: F401

    begin = time.monotonic()
    for i in range(400):
        interrupted_session(sim, keep, alarm, 1e-5 + (i * 37 % 400) / 400 * 0.012)
        if time.monotonic() - begin > 40:
            break  # how many moments there are depends on the machine; the lines below are always the same


def interrupted_session(sim: SimDevice, keep: str, interrupt: Callable[[float], object], when: float) -> str:
    """A session with one launch, interrupted; then one that is not. `interrupt(0)` calls it off. Returns how far the first came."""
    finders, start = len(sys.meta_path), threading.Thread.start
    prof = cuptiprof.profile(device="sim", budget="16 MB", keep=keep)
    stage = "enter"
    with contextlib.suppress(KeyboardInterrupt):
        try:
            interrupt(when)
            with prof:
                stage = "in"
                sim.launch("k")
                stage = "exit"
            stage = "after"
        finally:
            interrupt(0)
    if prof.state not in ("idle", "stopped"):  # at the first instruction of __exit__
        stage = "late"
        prof.stop()
    if stage in ("late", "exit", "after"):
        names = list(prof.result().kernels["name"])
        assert names == ["k"] or (stage == "late" and not names)
    with cuptiprof.profile(device="sim", budget="16 MB") as following:
        sim.launch("next")
    assert list(following.result().kernels["name"]) == ["next"]
    assert len(sys.meta_path) == finders and threading.Thread.start is start
    return stage


PACKAGE = str(Path(cuptiprof.__file__).parent)


class AtLine:
    """Interrupts at the n-th line of ours that this thread runs: the same moments on any machine."""

    def __init__(self) -> None:
        self.lines = 0
        self._wanted = 0

    def __call__(self, wanted: float) -> None:
        if wanted:
            self.lines, self._wanted = 0, int(wanted)
        sys.settrace(self._trace if wanted else None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE) or in_destructor(frame):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._wanted:
                raise KeyboardInterrupt
        return self._trace


def in_destructor(frame: FrameType | None) -> bool:
    """CPython swallows what is raised there."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


@pytest.mark.parametrize("keep", ["latest", "spill"])
def test_interruptions_at_any_line(sim: SimDevice, keep: str) -> None:
    if ran_without_torch(f"test_interruptions_at_any_line[{keep}]"):
        return
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    at_line = AtLine()
    interrupted_session(sim, keep, at_line, 10**9)
    interrupted_session(sim, keep, at_line, 10**9)
    lines = at_line.lines  # no import left
    stages = Counter(interrupted_session(sim, keep, at_line, n) for n in range(1, lines, 5))
    assert lines > 300 and stages["enter"] > 20 and stages["exit"] > 20, (lines, stages)
    assert stages["late"] * 10 < sum(stages.values()), stages


def test_a_warning_made_an_error_loses_nothing(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", kernels="nope")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(EmptySelectionWarning) as caught, prof:
            sim.launch("k")
    assert prof.result().losses["filter_rejected"] == 1 and prof.state == "stopped"
    assert "sessions" not in str(caught.value)
    prof = cuptiprof.profile(device="sim", metrics=["inst_executed"], kernels="nope")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning), prof:
            sim.launch("k")
    assert "no kernel was selected" in prof.result().metadata["counters"]["notes"][-1]


def test_warnings_name_the_users_line(sim: SimDevice) -> None:
    with pytest.warns(EmptySelectionWarning) as caught, cuptiprof.profile(device="sim", kernels="nope"):
        sim.launch("k")
    prof = cuptiprof.profile(device="sim", kernels="nope").start()
    sim.launch("k")
    with pytest.warns(EmptySelectionWarning) as also:
        prof.stop()
    assert {w.filename for w in [*caught, *also]} == {__file__}


def test_on_ready_that_raises_loses_nothing(sim: SimDevice) -> None:
    def fail(prof: cuptiprof.profile) -> None:
        raise ValueError("user")

    prof = cuptiprof.profile(device="sim", on_ready=fail)
    with pytest.raises(ValueError, match="user"), prof:
        sim.launch("k")
    assert prof.state == "stopped" and len(prof.result().kernels) == 1


def test_stop_in_a_signal_handler_during_start(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clear error, and the session is as if the handler had not called."""
    prof = cuptiprof.profile(device="sim")
    said: list[str] = []

    def handler(number: int, frame: object) -> None:
        for call in (prof.stop, prof.pause, prof.step, prof.detach):
            try:
                call()
            except SessionError as e:
                said.append(str(e))

    before = signal.signal(signal.SIGUSR1, handler)
    from cuptiprof.device.devices import SimulatedDevice

    started = SimulatedDevice.started

    def interrupted(self: SimulatedDevice) -> None:
        signal.raise_signal(signal.SIGUSR1)
        started(self)

    monkeypatch.setattr(SimulatedDevice, "started", interrupted)
    try:
        with prof:
            sim.launch("k")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(said) == 4 and all("in the middle of start()" in s and "signal handler" in s for s in said)
    assert len(prof.result().kernels) == 1


class Raises:
    """A number whose value cannot be had."""

    def __float__(self) -> float:
        raise RuntimeError("no value")

    def item(self) -> float:
        raise RuntimeError("no value")

    def __str__(self) -> str:
        raise RuntimeError("no text")


LOOP: list[Any] = []
LOOP.append(LOOP)
ODD: list[dict[str, Any]] = [
    {"flops": 10**400}, {"bytes": 10**400, "x": 1}, {"flops": Raises()}, {"x": Raises(), "y": 2}, {"x": 10**5000, "y": 2},
    {"x": float("nan")}, {"x": 1j}, {"x": "\ud800"}, {"x\ud800": "\ud800"}, {"flops": True}, {"flops": -1.5},
    {"flops": "abc"}, {"bytes": "1"}, {"flops": [1]}, {"x": [1]}, {"x": Raises}, {"x": {Raises(): 1}}, {"nvtx": Raises()},
    {"s": slice(3), "x": LOOP}, {"x": range(10**9), "y": {"z": {1, 2}}},
]  # fmt: skip


@pytest.mark.parametrize("profiling", [False, True])
def test_annotations_never_raise(profiling: bool, sim: SimDevice) -> None:
    if profiling:
        prof = cuptiprof.profile(device="sim").start()
    names: list[Any] = [3, None, Raises(), "", "a\0b", "\ud800x\udcff", "\udcff" * 3, "é", "x" * 100_000]
    for name in names:
        with cuptiprof.region(name):
            pass
    for metadata in ODD:
        with cuptiprof.region("odd", **metadata):
            pass
        cuptiprof.region("odd", **metadata)(lambda: None)()
    if not profiling:
        return
    r = prof.stop()
    assert len(r.regions) == len(names) + 2 * len(ODD)
    rows = list(r.regions.rows())
    assert any("ud800" in str(row) for row in rows) and any('"y": 2' in str(row) for row in rows)
    str(r.regions_report())


def test_a_session_decorates_async_functions(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim")

    @prof
    async def work(n: int) -> int:
        sim.launch("before", count=n)
        await asyncio.sleep(0.01)
        sim.launch("after", count=n)
        return n

    class Callable_:
        async def __call__(self) -> None:
            sim.launch("called")

    assert asyncio.run(work(2)) == 2 and work.__name__ == "work"
    assert list(prof.result().kernels["name"]) == ["before"] * 2 + ["after"] * 2
    assert asyncio.run(functools.partial(work, 3)()) == 3
    assert len(prof.result().kernels) == 6
    asyncio.run(prof(Callable_())())
    assert list(prof.result().kernels["name"]) == ["called"]


def test_neither_sessions_nor_regions_decorate_generators() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def asynchronous() -> Any:
        yield 1

    for decorator in (cuptiprof.profile(device="sim"), cuptiprof.region("r")):
        for function in (generator, asynchronous, functools.partial(generator)):
            with pytest.raises(TypeError, match="is a generator"):
                decorator(function)  # type: ignore[operator]
        with pytest.raises(TypeError, match="decorates functions"):
            decorator(3)  # type: ignore[operator]


@pytest.mark.parametrize(
    "arguments,error,words",
    [
        ({"budget": "100 TB"}, BudgetError, "of memory that there are"),
        ({"budget": 2**62}, BudgetError, "of memory that there are"),
        ({"buffer_count": 2**46}, BudgetError, "buffer_count"),
        ({"buffer_count": 2**31}, BudgetError, "leave no room"),
        ({"buffer_count": -1}, BudgetError, "buffer_count"),
        ({"buffer_count": 2.5}, BudgetError, "buffer_count"),
        ({"buffer_count": "8"}, BudgetError, "buffer_count"),
        ({"buffer_size": 2**40, "buffer_count": 2**31}, BudgetError, "leave no room"),
        ({"device": 3}, DeviceError, "unknown device 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_error(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        cuptiprof.profile(**{"device": "sim", **arguments}).start()
    assert "hint" in str(caught.value)


def test_a_dropped_session_of_any_kind_goes(sim: SimDevice, tmp_path: Path) -> None:
    """Without the collector of cycles: a session is in none."""
    gc.disable()
    try:
        for keep in ("latest", "spill"):
            cuptiprof.profile(device="sim", keep=keep, spill_dir=tmp_path).start()
            deadline = time.monotonic() + 5
            while threading.active_count() > 1 and time.monotonic() < deadline:
                time.sleep(0.005)
            with cuptiprof.profile(device="sim") as prof:
                sim.launch("k")
            assert len(prof.result().kernels) == 1
    finally:
        gc.enable()
