"""One clock: CUPTI's default one, another client's, a change of clocks, and records without times."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kineto_like import KinetoLike

import cuptiprof
from cuptiprof.sim.sim_device import Fault, Op, SimDevice


@pytest.fixture
def sim() -> Iterator[SimDevice]:
    """The stand-in with its real clock: a virtual one is nobody's to register."""
    device = SimDevice()
    device.clear_faults()
    device.reset()
    yield device
    device.clear_faults()


@pytest.fixture
def other() -> Iterator[KinetoLike]:
    client = KinetoLike(released=False)
    yield client
    client.gone()


def test_cuptis_own_clock_is_that_of_the_day(sim: SimDevice, other: KinetoLike) -> None:
    assert abs(other.timestamp() - time.time_ns()) < 1_000_000_000


def kernels(count: int = 20) -> cuptiprof.Result:
    device = SimDevice()
    begin = time.monotonic_ns()
    with cuptiprof.profile(device=cuptiprof.device.devices.Device("sim", library())) as prof, cuptiprof.region("r"):
        device.launch("k", count=count, duration_ns=1000)
        device.synchronize()
    result = prof.result()
    timed = result.timed().kernels
    assert not len(timed) or begin <= timed["start"].min() <= timed["end"].max() <= time.monotonic_ns()
    assert begin <= result.regions["start"][0] <= result.regions["end"][0] <= time.monotonic_ns()
    return result


def library() -> object:
    from cuptiprof import _core
    from cuptiprof.sim.sim_device import library_path

    return _core.load_cupti(str(library_path()), "test", True)


def test_registered_once_and_not_again(sim: SimDevice, other: KinetoLike) -> None:
    """Each further registration would spoil a record."""
    for _ in range(5):
        result = kernels()
        assert len(result.timed().kernels) == 20
        assert not result.losses


def test_ankineto_likes_clock_is_noticed_before_the_session(sim: SimDevice, other: KinetoLike) -> None:
    kernels()
    other.register_clock()
    result = kernels()
    # Ours is registered again: the record at the head is spoiled, the others are right.
    assert len(result.kernels) == 20
    assert len(result.timed().kernels) == 19
    assert result.losses["invalid_timestamps"] == 1
    assert not kernels().losses


def test_clock_lost_to_finalize_is_noticed(sim: SimDevice, other: KinetoLike) -> None:
    kernels()
    other.lib.cuptiFinalize()
    assert not kernels().losses


def test_ankineto_likes_clock_inside_the_session(sim: SimDevice, other: KinetoLike) -> None:
    """Kineto's start: from there on, no time is to be trusted, and none is kept."""
    device = SimDevice()
    begin = time.monotonic_ns()
    with cuptiprof.profile(device=cuptiprof.device.devices.Device("sim", library())) as prof:
        device.launch("before", count=10, duration_ns=1000)
        other.register_clock()
        device.launch("after", count=10, duration_ns=1000)
    result = prof.result()
    assert list(result.kernels["name"]) == ["before"] * 10 + ["after"] * 10
    timed = result.timed()
    assert set(timed.kernels["name"]) == {"before"}
    assert begin < timed.kernels["start"].min() <= timed.kernels["end"].max() <= time.monotonic_ns()
    assert timed.api_calls["end"].max() <= time.monotonic_ns()
    assert result.losses["invalid_timestamps"] >= 20  # the kernels and their calls
    assert "10 kernels, copies and sets have no times" in str(result.summary())


def test_a_library_without_the_callback_keeps_its_own_clock(sim: SimDevice) -> None:
    sim.inject(Fault.FAIL_CALL, "cuptiActivityRegisterTimestampCallback", a=27)
    device = SimDevice()
    begin = time.time_ns()
    with cuptiprof.profile(device=cuptiprof.device.devices.Device("sim", library())) as prof, cuptiprof.region("r"):
        device.launch("k", duration_ns=1000)
    result = prof.result()
    assert begin <= result.regions["start"][0] <= result.kernels["start"][0] <= time.time_ns()
    assert not result.losses


def test_work_without_times_keeps_its_row(sim: SimDevice, tmp_path: Path) -> None:
    sim.reset(virtual_clock=True)
    with cuptiprof.profile(device="sim", keep="first") as prof, cuptiprof.region("r"):
        device = SimDevice()
        device.inject(Fault.ZERO_TIMESTAMPS, a=4)
        device.launch("k", count=100, duration_ns=1000)
        device.call(Op.MEMCPY, bytes=8)
    result = prof.result()
    assert len(result.kernels) == 100
    assert (result.kernels["end"] == 0).sum() == 25
    assert set(result.kernels["region"]) == {"r"}
    assert result.losses["invalid_timestamps"] == 25
    assert result.metadata["launches"]["without_times"] == 25
    assert "device_buffer_size=" in result.metadata["note"]
    # No view of times counts them as 0 ns long, and none begins at time 0.
    view = result.summary().content
    at = list(view.data["name"]).index("k")
    assert [view.data[c][at] for c in ("calls", "avg_ns", "min_ns")] == [75, 1000, 1000]
    assert "25 kernels, copies and sets have no times" in str(result.summary())
    assert len(result.gpu_trace().content) == 76
    assert result.key_averages().table()
    result.export(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(e.get("cat") == "kernel" for e in events) == 75
    assert max(e["dur"] for e in events if "dur" in e) < 1e6
    result.save(tmp_path / "run")
    assert (cuptiprof.open(tmp_path / "run").kernels["end"] == 0).sum() == 25


def test_regions_have_times_of_pythons_clock(sim: SimDevice) -> None:
    """Whatever they are stamped with: each lies between readings of ``time.perf_counter_ns`` around it, on all threads."""
    sim.reset()  # real time
    seen: dict[str, list[tuple[int, int, int]]] = {f"thread_{i}": [] for i in range(3)}
    read = time.perf_counter_ns

    def work(name: str, pauses: tuple[float, ...]) -> None:
        for pause in pauses:
            for _ in range(50):
                before = read()
                with cuptiprof.region(name):
                    inside = read()
                seen[name].append((before, inside, read()))
            time.sleep(pause)

    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        threads = [threading.Thread(target=work, args=(name, (0, 1e-4, 1e-3, 0.02, 0.3, 0.01, 0))) for name in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    regions = prof.result().regions
    slack = 1_000  # ns: of a reading that was interrupted
    for name, of in seen.items():
        before, inside, after = np.array(of).T
        rows = regions.where(regions["name"] == name).sorted_by("start")
        assert len(rows) == len(of)
        assert (rows["start"] >= before - slack).all() and (rows["start"] <= inside + slack).all()
        assert (rows["end"] >= inside - slack).all() and (rows["end"] <= after + slack).all()
