"""Waiting for a context of which a stream is being captured breaks the capture: nothing of ours may do it."""

from __future__ import annotations

import threading

import pytest
from capturing import GLOBAL, OTHER, RELAXED, STREAM, THREAD_LOCAL, begin, captured_elsewhere, end, refused

import cuptiprof
from cuptiprof.device.devices import open_device
from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import DRIVER, RUNTIME, Op, SimDevice

UNSUPPORTED, INVALIDATED, ISOLATED = 900, 901, 907


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same thread", "other thread"])
def test_the_stand_in_breaks_captures_as_the_driver_does(sim: SimDevice, mode: int, elsewhere: bool) -> None:
    begin(sim, value=mode)
    sim.launch("node", stream=STREAM)
    codes: list[str] = []

    def wait() -> None:
        try:
            sim.synchronize()
        except DeviceError as e:
            codes.append(str(e)[-3:])

    if elsewhere:
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    else:
        wait()
    assert codes == [str(UNSUPPORTED)]
    refused(INVALIDATED, lambda: sim.launch("node", stream=STREAM))
    refused(INVALIDATED, lambda: end(sim))
    sim.synchronize()  # over
    refused(1, lambda: sim.call(Op.GRAPH_LAUNCH, graph_id=5))  # there is no graph


def test_what_else_breaks_a_capture(sim: SimDevice) -> None:
    for broken in (
        lambda: sim.call(Op.SYNC_STREAM, stream=STREAM),
        lambda: sim.call(Op.ALLOC, bytes=64, address=4096),
        lambda: sim.call(Op.MODULE_UNLOAD, domain=DRIVER),
    ):
        begin(sim)
        refused(UNSUPPORTED, broken)
        refused(INVALIDATED, lambda: end(sim))
    begin(sim)
    sim.call(Op.EVENT_RECORD, event=3, stream=STREAM)
    refused(ISOLATED, lambda: sim.call(Op.SYNC_EVENT, event=3))
    refused(INVALIDATED, lambda: end(sim))


def test_what_leaves_a_capture_alone(sim: SimDevice) -> None:
    sim.reset(devices=2)
    begin(sim, value=RELAXED)
    sim.call(Op.ALLOC, bytes=64, address=4096)
    sim.launch("k", stream=OTHER)
    sim.call(Op.SYNC_STREAM, stream=OTHER)
    sim.launch("k", device=1)
    sim.synchronize(device=1)  # another device's context
    end(sim)
    with captured_elsewhere(sim, value=THREAD_LOCAL):
        sim.call(Op.ALLOC, bytes=64, address=4096)


def test_a_capture_is_everybodys(sim: SimDevice) -> None:
    """What another thread launches into the stream is captured too; a non-relaxed capture ends where it began."""
    begin(sim)
    thread = threading.Thread(target=lambda: sim.launch("node", stream=STREAM))
    thread.start()
    thread.join()
    assert sim.truth()["kernels"] == 0
    codes: list[str] = []

    def end_there() -> None:
        try:
            end(sim)
        except DeviceError as e:
            codes.append(str(e)[-3:])

    thread = threading.Thread(target=end_there)
    thread.start()
    thread.join()
    assert codes == ["908"]
    end(sim)
    sim.call(Op.GRAPH_LAUNCH, graph_id=5)
    assert sim.truth()["kernels"] == 1


@pytest.mark.parametrize("domain", [RUNTIME, DRIVER])
@pytest.mark.parametrize("control", ["stop", "take", "discard"])
def test_captures_of_other_threads_survive(sim: SimDevice, control: str, domain: int) -> None:
    prof = cuptiprof.profile(device="sim")
    prof.start()
    sim.launch("before", count=5)
    with captured_elsewhere(sim, domain=domain):
        sim.launch("beside", stream=OTHER, count=7)
        before = cuptiprof._core.now_ns()
        if control == "stop":
            prof.stop()
        else:
            getattr(prof._session, control)()
        assert 0.9e9 < cuptiprof._core.now_ns() - before < 1.9e9  # it waits for the capture once
    result = prof.result() if control == "stop" else prof.stop()
    assert len(result.kernels) == (12 if control == "stop" else 0)
    assert "being captured" in result.metadata["note"]


def test_a_capture_that_ends_soon_is_waited_for(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim")
    prof.start()
    with captured_elsewhere(sim):
        sim.launch("long", duration_ns=30_000_000, stream=OTHER)
        thread = threading.Thread(target=prof.stop)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join()
    result = prof.result()
    assert "note" not in result.metadata and list(result.kernels["name"]) == ["long"]


def test_a_capture_of_the_stopping_thread_is_not_waited_for(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim")
    prof.start()
    sim.launch("k", count=5)
    begin(sim)
    sim.launch("node", stream=STREAM)
    before = cuptiprof._core.now_ns()
    result = prof.stop()
    assert cuptiprof._core.now_ns() - before < 900_000_000
    end(sim)
    sim.call(Op.GRAPH_LAUNCH, graph_id=5)
    assert list(result.kernels["name"]) == ["k"] * 5
    assert "being captured" in result.metadata["note"]


def test_a_capture_that_began_before_the_session(sim: SimDevice) -> None:
    device = open_device("sim")
    sim.launch("k")
    begin(sim)
    with cuptiprof.profile(device=device) as prof:
        sim.launch("k", count=5)
        sim.launch("node", stream=STREAM)
    end(sim)
    assert list(prof.result().kernels["name"]) == ["k"] * 5
    assert "being captured" in prof.result().metadata["note"]


def test_waits_go_on_after_the_capture(sim: SimDevice) -> None:
    """A capture that ended, failed to begin, or went with its stream or context, is open no more."""
    with cuptiprof.profile(device="sim") as prof:
        begin(sim)
        refused(401, lambda: begin(sim, graph=6))  # the stream is being captured already
        end(sim)
        begin(sim)
        sim.call(Op.STREAM_DESTROY, stream=STREAM)
        sim.launch("k", context=9)
        begin(sim, context=9)
        sim.call(Op.CONTEXT_DESTROY, context=9)
        sim.launch("long", duration_ns=30_000_000)
    result = prof.result()
    assert "note" not in result.metadata and list(result.kernels["name"]) == ["k", "long"]
    assert result.kernels["end"].min() > 0


def test_a_capture_begins_while_somebody_waits(sim: SimDevice) -> None:
    """A capture that begins while stop() waits for the GPU waits a moment itself, and is never broken."""
    for _ in range(5):
        prof = cuptiprof.profile(device="sim", activities=["kernel"])
        prof.start()
        sim.launch("long", duration_ns=20_000_000, stream=OTHER)
        thread = threading.Thread(target=prof.stop)
        thread.start()
        for _ in range(30):
            begin(sim)
            sim.launch("node", stream=STREAM)
            end(sim)
        thread.join()
        assert list(prof.result().kernels["name"]) == ["long"]
