"""CUPTI's settings belong to the process: a session leaves them as it found them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from kineto_like import BUFFER_SIZE, BUFFERS, DEFAULT_IDS, PER_THREAD, SYSTEM_IDS, ZEROED, KinetoLike

import cuptiprof
from cuptiprof import _core
from cuptiprof.device.devices import Device
from cuptiprof.errors import CuptiError
from cuptiprof.sim.sim_device import Fault, Op, SimDevice, library_path

BYTE = ctypes.c_uint8


@pytest.fixture
def other(sim: SimDevice) -> Iterator[KinetoLike]:
    client = KinetoLike(released=False)
    yield client
    client.gone()


def device() -> Device:
    return Device("sim", _core.load_cupti(str(library_path()), "test", True))


def settings(client: KinetoLike) -> tuple[int, ...]:
    return (
        client.attribute(ZEROED, BYTE),
        client.attribute(PER_THREAD, BYTE),
        client.attribute(BUFFER_SIZE),
        client.attribute(BUFFERS),
        client.thread_ids(),
    )


@pytest.mark.parametrize("kineto_was_here", [False, True])
def test_what_a_session_sets_is_put_back(sim: SimDevice, other: KinetoLike, kineto_was_here: bool) -> None:
    if kineto_was_here:
        other.set_attribute(PER_THREAD, 0, BYTE)
        other.set_attribute(ZEROED, 1, BYTE)
        other.set_attribute(BUFFER_SIZE, 1 << 20)
        other.lib.cuptiSetThreadIdType(SYSTEM_IDS)
    before = settings(other)
    with cuptiprof.profile(device=device(), device_buffer_size="16 MB", device_buffers=500) as prof:
        assert settings(other) == (1, 1, 16_000_000, 500, SYSTEM_IDS)
        sim.launch("k")
    assert settings(other) == before
    assert len(prof.result().kernels) == 1


def test_what_is_not_asked_for_is_left_alone(sim: SimDevice, other: KinetoLike) -> None:
    with cuptiprof.profile(device=device()):
        assert settings(other) == (1, 1, 3_200_000, 250, SYSTEM_IDS)
    assert settings(other) == (0, 1, 3_200_000, 250, DEFAULT_IDS)


def test_put_back_after_a_start_that_failed(sim: SimDevice, other: KinetoLike) -> None:
    before = settings(other)
    sim.inject(Fault.FAIL_CALL, "cuptiActivityRegisterCallbacks", a=1)
    with pytest.raises(CuptiError):
        cuptiprof.profile(device=device(), device_buffer_size="16 MB").start()
    assert settings(other) == before


def test_device_buffers_that_cupti_refuses_are_an_error(sim: SimDevice, other: KinetoLike) -> None:
    sim.inject(Fault.FAIL_CALL, "cuptiActivitySetAttribute", a=1)
    cuptiprof.profile(device=device()).start().stop()  # what we want for ourselves may be refused
    with pytest.raises(CuptiError, match="device_buffer_size=16000000"):
        cuptiprof.profile(device=device(), device_buffer_size="16 MB").start()


def test_kinetos_shared_buffers_are_not_inherited(sim: SimDevice, other: KinetoLike) -> None:
    other.start()
    other.stop()
    assert other.attribute(PER_THREAD, BYTE) == 0
    with cuptiprof.profile(device=device()) as prof:
        assert other.attribute(PER_THREAD, BYTE) == 1
        sim.launch("k", count=100)
    assert other.attribute(PER_THREAD, BYTE) == 0
    assert len(prof.result().kernels) == 100


@pytest.mark.parametrize("late", [False, True])
def test_latency_timestamps_are_switched_on_before_the_kinds_and_off_again(sim: SimDevice, late: bool) -> None:
    if late:
        sim.launch("before")
    with cuptiprof.profile(device=device(), latency_timestamps=True) as prof:
        sim.launch("k", count=10)
    result = prof.result()
    assert result.metadata["cuda_was_up"] is late
    assert ("latency timestamps" in result.metadata.get("note", "")) is late
    assert (result.kernels["queued"] != 0).all() != late
    sim.reset(virtual_clock=True)
    with cuptiprof.profile(device=device()) as prof:
        sim.launch("k", count=10)
    assert not prof.result().kernels["queued"].any()


ASKING = {
    "cudaGetDevice",
    "cudaEventQuery",
    "cuEventQuery",
    "cuCtxGetCurrent",
    "cuDevicePrimaryCtxGetState",
    "cuKernelGetAttribute",
}


@pytest.mark.parametrize("everything", [False, True])
def test_calls_that_only_ask_are_left_out(sim: SimDevice, everything: bool) -> None:
    """As Kineto leaves them out (CuptiActivityApi.cpp), and queries of events."""
    by_name = {
        sim.callback_name(domain, cbid).partition("_v")[0]: (domain, cbid)
        for domain in (1, 2)
        for cbid in range(1, 800)
    }
    with cuptiprof.profile(device=device(), all_api_calls=everything) as prof:
        for name in [*ASKING, "cudaSetDevice", "cuCtxSetCurrent"]:
            domain, cbid = by_name[name]
            sim.call(Op.API, domain=domain, cbid=cbid)
    expected = {"cudaSetDevice", "cuCtxSetCurrent"} | (ASKING if everything else set())
    assert set(prof.result().api_calls["name"]) == expected
