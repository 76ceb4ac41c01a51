"""Several subscribers at once (CUDA 13.3, driver r610): each has all its records and its own settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kineto_like import KinetoLike
from sharing_client import KERNEL, RUNTIME, STATE, SharingClient

import cuptiprof
from cuptiprof import _core
from cuptiprof.device.devices import Device
from cuptiprof.errors import CuptiError, SessionError
from cuptiprof.sim.sim_device import Fault, SimDevice, library_path


def device() -> Device:
    return Device("cuda", _core.load_cupti(str(library_path()), "test", True))


@pytest.fixture(params=[130300, 130400], ids=["13.3", "13.4"])
def shared_sim(sim: SimDevice, request: pytest.FixtureRequest) -> Iterator[SimDevice]:
    sim.reset(cupti_version=request.param)
    yield sim
    sim.clear_faults()
    sim._lib.cuptiFinalize()
    sim.reset()


@pytest.mark.parametrize("order", ["before", "beside", "after"])
def test_both_get_all_of_theirs(shared_sim: SimDevice, order: str) -> None:
    other = SharingClient()
    prof = cuptiprof.profile(device=device(), share_cupti=True)
    theirs = 0
    if order == "before":
        other.start()
    prof.start()
    shared_sim.launch("first", count=5)
    theirs += 5 if order == "before" else 0
    if order == "beside":
        other.start()
    shared_sim.launch("middle", count=7)
    theirs += 7 if order != "after" else 0
    if order == "beside":
        other.stop()
    shared_sim.launch("last", count=3)
    theirs += 3 if order == "before" else 0
    prof.stop()
    if order == "after":
        other.start()
    shared_sim.launch("theirs", count=4)
    theirs += 4 if order != "beside" else 0
    if order != "beside":
        other.stop()
    result = prof.result()
    assert len(result.kernels) == 15
    assert not result.losses
    assert other.kinds.count(KERNEL) == theirs
    assert other.kinds.count(RUNTIME) == theirs
    assert other.strangers == 0


def test_cupti_that_others_share_is_joined(shared_sim: SimDevice) -> None:
    other = SharingClient()
    other.start()
    assert other.attribute(STATE) == 1
    for _ in range(3):
        with cuptiprof.profile(device=device()) as prof:
            shared_sim.launch("k", count=10)
        assert len(prof.result().kernels) == 10
        assert not prof.result().losses
    other.stop()
    assert other.kinds.count(KERNEL) == 30


def test_settings_are_ones_own(shared_sim: SimDevice) -> None:
    other = SharingClient()
    other.start()
    other.use_its_clock()
    before = other.settings()
    with cuptiprof.profile(
        device=device(), latency_timestamps=True, device_buffer_size="16 MB", all_api_calls=True
    ) as prof:
        assert other.settings() == before
        shared_sim.launch("k", count=5)
    assert other.settings() == before
    other.stop()
    result = prof.result()
    assert not result.losses
    assert (result.kernels["submitted"] > 0).all()
    assert set(result.api_calls["thread"]) == {threading.get_native_id()}
    # Each in the clock of its own.
    assert min(other.starts) > 10**15
    assert result.kernels["start"].max() < 10**15


def test_kinds_and_calls_are_ones_own(shared_sim: SimDevice) -> None:
    other = SharingClient()
    other.start(RUNTIME)
    with cuptiprof.profile(device=device(), activities=["kernel"]) as prof:
        shared_sim.launch("k", count=5)
    shared_sim.launch("k", count=5)
    other.stop()
    assert other.kinds == [RUNTIME] * 10
    assert len(prof.result().kernels) == 5
    assert len(prof.result().api_calls) == 0


def test_devices_and_contexts_come_to_us_alone(shared_sim: SimDevice) -> None:
    shared_sim.launch("before")
    other = SharingClient()
    other.start()
    with cuptiprof.profile(device=device()) as prof:
        shared_sim.launch("k")
    other.stop()
    result = prof.result()
    assert len(result.devices) == 1
    assert len(result.contexts) == 1
    assert set(other.kinds) == {KERNEL, RUNTIME}


def test_regions_pauses_and_threads(shared_sim: SimDevice) -> None:
    other = SharingClient()
    other.start()

    def work(n: int) -> None:
        with cuptiprof.region(f"thread_{n}"):
            shared_sim.launch(f"k{n}", count=20)

    prof = cuptiprof.profile(device=device()).start()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    prof.pause()
    shared_sim.launch("paused", count=3)
    prof.resume()
    shared_sim.launch("again", count=2)
    prof.stop()
    other.stop()
    result = prof.result()
    assert len(result.kernels) == 82
    assert not result.losses
    assert other.kinds.count(KERNEL) == 85


def test_dropped_records_are_each_ones_own(shared_sim: SimDevice) -> None:
    other = SharingClient()
    other.start(RUNTIME)
    shared_sim.inject(Fault.DROP_RECORDS, a=3)
    with cuptiprof.profile(device=device(), activities=["kernel"]) as prof:
        shared_sim.launch("k", count=30)
    shared_sim.clear_faults()
    theirs = other.dropped()
    other.stop()
    ours = prof.result().losses["cupti_dropped"]
    assert 0 < theirs == 30 - other.kinds.count(RUNTIME)
    assert 0 < ours == shared_sim.truth()["records_dropped"] - theirs


def test_a_driver_that_is_too_old(shared_sim: SimDevice) -> None:
    """The session has CUPTI alone, says so, and mixes nothing."""
    shared_sim.inject(Fault.OLD_DRIVER)
    with cuptiprof.profile(device=device(), share_cupti=True) as prof:
        shared_sim.launch("k", count=10)
    assert len(prof.result().kernels) == 10
    assert not prof.result().losses
    assert "not shared" in prof.result().metadata["note"]


@pytest.mark.parametrize("version", [120600, 130001, 130201])
def test_a_library_that_is_too_old(sim: SimDevice, version: int) -> None:
    sim.reset(cupti_version=version)
    with cuptiprof.profile(device=device(), share_cupti=True) as prof:
        sim.launch("k", count=10)
    assert len(prof.result().kernels) == 10
    assert "not shared" in prof.result().metadata["note"]


@pytest.mark.parametrize("call", ["cuptiGetTimestamp_v2", "cuptiActivityGetAttribute_v2"])
def test_sharing_that_is_not_believed(shared_sim: SimDevice, call: str) -> None:
    """A subscriber whose first calls fail leaves; what comes then is refused, and nothing stays behind."""
    shared_sim.inject(Fault.FAIL_CALL, call, a=999)
    with pytest.raises(CuptiError, match="cuptiSubscribe returned 39"):
        cuptiprof.profile(device=device(), share_cupti=True).start()
    shared_sim.clear_faults()
    with cuptiprof.profile(device=device()) as prof:
        shared_sim.launch("k")
    assert len(prof.result().kernels) == 1


def test_alone_unless_asked(shared_sim: SimDevice) -> None:
    """A torch.profiler of today can subscribe after us: calls for several would shut it out."""
    with cuptiprof.profile(device=device()) as prof:
        shared_sim.launch("k", count=10)
    assert len(prof.result().kernels) == 10
    kineto = KinetoLike(released=True)
    kineto.start()
    assert kineto.status == 0
    shared_sim.launch("k", count=10)
    kineto.stop()
    assert kineto.bytes > 0
    kineto.lib.cuptiUnsubscribe(kineto.subscriber)


def test_a_client_of_the_old_calls_is_refused_beside_several(shared_sim: SimDevice) -> None:
    prof = cuptiprof.profile(device=device(), share_cupti=True).start()
    kineto = KinetoLike(released=True)
    kineto.start()
    assert kineto.status == 39
    shared_sim.launch("k", count=10)
    kineto.lib.cuptiActivityDisable(KERNEL)  # nor can it switch ours off
    shared_sim.launch("k", count=10)
    prof.stop()
    assert len(prof.result().kernels) == 20
    assert not prof.result().losses


def test_what_needs_cupti_alone(shared_sim: SimDevice) -> None:
    for arguments in ({"activities": ["graph"]}, {"metrics": ["sm__cycles_active.avg"]}):
        with pytest.raises(SessionError, match="cannot share"):
            cuptiprof.profile(device=device(), share_cupti=True, **arguments).start()  # type: ignore[arg-type]
    other = SharingClient()
    other.start()
    with pytest.raises(CuptiError, match="cuptiSubscribe returned 39"):
        cuptiprof.profile(device=device(), activities=["graph"]).start()
    other.stop()


def test_finalize_leaves_the_others_alone(shared_sim: SimDevice) -> None:
    other = SharingClient()
    other.start()
    prof = cuptiprof.profile(device=device()).start()
    shared_sim.launch("k", count=2)
    with pytest.raises(CuptiError):
        prof.detach(finalize=True)
    shared_sim.launch("k", count=2)
    other.stop()
    assert other.kinds.count(KERNEL) == 4


def test_virtual_clock(sim: SimDevice) -> None:
    """A library that takes no clock keeps its own, the subscriber's too."""
    sim.reset(virtual_clock=True, cupti_version=130400)
    with cuptiprof.profile(device=device(), share_cupti=True) as prof, cuptiprof.region("r"):
        sim.launch("k", count=3)
    assert len(prof.result().kernels) == 3
    assert not prof.result().losses
    sim._lib.cuptiFinalize()
