"""``profile.detach``: stopping, and taking CUPTI itself out of the process."""

from __future__ import annotations

import threading
import time

import pytest

import cuptiprof
from cuptiprof import _core
from cuptiprof.data.activities import kinds_of
from cuptiprof.data.result import from_native
from cuptiprof.errors import CuptiError, SessionError
from cuptiprof.sim.sim_device import Fault, Op, SimDevice, library_path


def test_everything_recorded_is_delivered_and_nothing_is_left(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim").start()
    device = SimDevice()
    with cuptiprof.region("fwd"):
        device.launch("k", count=5000, duration_ns=2000)
    result = prof.detach(finalize=True)
    assert len(result.kernels) == 5000
    assert set(result.kernels["region"]) == {"fwd"}
    assert not result.losses
    assert prof.state == "stopped" and prof.result() is result
    before = device.truth()
    assert before["buffers_outstanding"] == 0
    device.launch("later", count=1000)
    after = device.truth()
    assert after["callbacks"] == before["callbacks"]
    assert after["records_written"] == before["records_written"]


def test_cupti_is_left_on_the_way_out_of_a_driver_call(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", activities=["kernel"])
    with prof:
        pass
    before = SimDevice().truth()["callbacks"]
    prof.detach(finalize=True)
    # Entry and exit of our own call; the exit finalized, so that nothing came after it.
    assert SimDevice().truth()["callbacks"] - before == 2


def test_finalized_without_a_driver_call_to_leave_from(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", activities=["kernel"])
    with prof:
        SimDevice().launch("k", count=10)
    device = SimDevice()
    device.inject(Fault.FAIL_CALL, "cuptiEnableCallback", a=999)
    device.inject(Fault.FAIL_CALL, "cuptiFinalize", a=7)
    with pytest.raises(CuptiError) as e:  # it was called: it is what failed
        prof.detach(finalize=True)
    assert (e.value.code, e.value.call) == (7, "cuptiFinalize")
    device.clear_faults()
    prof.detach(finalize=True)


@pytest.mark.parametrize("finalize", [False, True])
def test_a_second_session_has_all_of_it_again(sim: SimDevice, finalize: bool) -> None:
    metrics = ["achieved_occupancy", "ipc"]
    rows = []
    for _ in range(3):
        prof = cuptiprof.profile(device="sim", metrics=metrics).start()
        device = SimDevice()
        with cuptiprof.region("step"):
            device.launch("_Z3addPf", (64, 1, 1), (128, 1, 1), count=20, duration_ns=9000)
        device.synchronize()
        result = prof.detach(finalize=finalize)
        assert len(result.kernels) == 20 and set(result.kernels["region"]) == {"step"}
        assert set(result.kernels["thread"]) == {threading.get_native_id()}
        assert len(result.api_calls) > 20 and not result.losses
        rows.append(result.metrics["value"].tolist())
        assert len(rows[-1]) == 40 and rows[-1] == rows[0]


def test_plain_detach_is_stop(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", activities=["kernel"]).start()
    device = SimDevice()
    device.launch("k", count=7)
    device.inject(Fault.FAIL_CALL, "cuptiFinalize", a=999)
    assert len(prof.detach().kernels) == 7
    assert prof.detach() is prof.result()  # again: nothing happens


def test_not_started() -> None:
    with pytest.raises(SessionError, match="without start"):
        cuptiprof.profile(device="sim").detach(finalize=True)


def test_refused_while_another_session_runs(sim: SimDevice) -> None:
    first = cuptiprof.profile(device="sim", activities=["kernel"])
    with first:
        SimDevice().launch("a", count=3)
    with cuptiprof.profile(device="sim", activities=["kernel"]) as second:
        device = SimDevice()
        device.launch("b", count=4)
        with pytest.raises(SessionError, match="another cuptiprof session is running") as e:
            first.detach(finalize=True)
        assert "test_detach.py" in str(e.value)
        device.launch("b", count=5)
    assert len(second.result().kernels) == 9 and not second.result().losses
    assert len(first.detach(finalize=True).kernels) == 3


def test_refused_while_another_tool_holds_cupti(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", activities=["kernel"]).start()
    device = SimDevice()
    device.launch("k", count=6)
    result = prof.detach()
    device.inject(Fault.OTHER_SUBSCRIBER, "Proton")
    with pytest.raises(CuptiError) as e:
        prof.detach(finalize=True)
    assert e.value.code == 39 and "Proton" in str(e.value)
    assert prof.result() is result
    device.clear_faults()
    with cuptiprof.profile(device="sim", activities=["kernel"]) as again:  # the place was given back
        SimDevice().launch("k", count=2)
    assert len(again.result().kernels) == 2


def test_a_failed_finalize_keeps_the_result(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", activities=["kernel"]).start()
    device = SimDevice()
    device.launch("k", count=8)
    device.inject(Fault.FAIL_CALL, "cuptiFinalize", a=999)
    with pytest.raises(CuptiError):
        prof.detach(finalize=True)
    assert prof.state == "stopped" and len(prof.result().kernels) == 8
    device.clear_faults()
    prof.detach(finalize=True)


def test_a_region_open_across_it(sim: SimDevice) -> None:
    """Its exit must not wake CUPTI up again, and the next session must not see it."""
    prof = cuptiprof.profile(device="sim", activities=["kernel"])
    prof.start()
    device = SimDevice()
    with cuptiprof.region("across"):
        device.launch("k", count=3)
        result = prof.detach(finalize=True)
    assert set(result.kernels["region"]) == {"across"}
    device.clear_faults()
    prof.start()
    SimDevice().launch("k", count=3)
    assert set(prof.detach(finalize=True).kernels["region"]) == {""}


def test_while_other_threads_launch(sim: SimDevice) -> None:
    """Each session is whole, whatever is on its way when CUPTI leaves."""
    device = SimDevice()
    device.reset()  # real time
    api = _core.load_cupti(str(library_path()), "test", True)
    stop = threading.Event()
    launched = [0] * 3

    def work(i: int) -> None:
        ops = device.ops(50, Op.KERNEL, name=f"thread_{i}", duration_ns=100, stream=10 + i)
        while not stop.is_set():
            with cuptiprof.region(f"thread_{i}"):
                device.run(ops)
            launched[i] += 50

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(launched))]
    for t in threads:
        t.start()
    try:
        for _ in range(20):
            session = _core.Session(api=api, kinds=kinds_of(["kernel"]), keep="latest", budget=32 << 20)
            session.start()
            deadline = time.monotonic() + 10
            while session.counts()["launches"] < 500 and time.monotonic() < deadline:
                time.sleep(0.001)
            store = session.stop()
            session.finalize()
            with pytest.raises(SessionError, match="stopped"):
                session.stop()
            counts, losses = session.counts(), dict(session.losses())
            assert counts["launches"] >= 500
            # A launch of each thread can be between its callback and its record when recording ends.
            assert losses["unreconciled_launches"] <= len(launched)
            kernels = from_native(store.tables(), store.strings())["kernels"]
            lost = losses["unreconciled_launches"] + counts["kernels_lost_in_pool"] + losses["budget_evicted"]
            assert len(kernels) + lost >= counts["launches"]
            for name, region in set(zip(kernels["name"], kernels["region"], strict=True)):
                assert region in (name, "")  # "": the region was open when the session began
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert min(launched) > 0
