"""Record layouts, losses and refusals scripted on the stand-in, and calls that it alone can make both ways.

The driver gives no choice of record layout, of lost or late records, or of other subscribers: these stay here. What holds
for hardware too is in tests/behaviours.
"""

from __future__ import annotations

import time

import pytest

import cuptiprof
from cuptiprof.errors import CuptiError
from cuptiprof.sim.sim_device import DRIVER, Fault, Flag, Op, SimDevice


def test_runtime_and_driver_calls_are_both_seen(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        device = SimDevice()
        device.launch("a")
        device.launch("b", domain=DRIVER)
    result = prof.result()
    assert result.metadata["launches"]["launches"] == 2
    assert list(result.api_calls["name"]) == ["cudaLaunchKernel", "cuLaunchKernel"]
    assert list(result.api_calls["domain"]) == [0, 1]
    assert not result.losses


def test_copies_sets_and_syncs(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["memcpy", "memset", "sync", "event", "memory", "runtime"]) as prof:
        d = SimDevice()
        d.call(Op.ALLOC, bytes=4096, address=1 << 30)
        d.call(Op.MEMCPY, bytes=1000, copy_kind=1, flags=Flag.ASYNC)
        d.call(Op.MEMCPY, bytes=2000, copy_kind=2)
        d.call(Op.MEMSET, bytes=64, value=7)
        d.call(Op.MEMCPY_PEER, bytes=10, dst_device=0, dst_context=1)
        d.call(Op.EVENT_RECORD, event=3)
        d.synchronize()
        d.call(Op.FREE, bytes=4096, address=1 << 30)
    r = prof.result()
    assert list(r.memcpys["bytes"]) == [1000, 2000, 10]
    assert list(r.memcpys["copy_kind"]) == [1, 2, 10]
    assert list(r.memcpys["is_async"]) == [1, 0, 0]
    assert list(r.memcpys["is_peer"]) == [0, 0, 1]
    assert (int(r.memsets["bytes"][0]), int(r.memsets["value"][0])) == (64, 7)
    assert list(r.cuda_events["event"]) == [3]
    assert list(r.synchronizations["type"]) == [4]
    assert list(r.memory["operation"]) == [1, 2]
    assert len(r.kernels) == 0


@pytest.mark.parametrize("version", [120600, 130001, 130400])
def test_every_record_layout_decodes_to_the_same_rows(version: int) -> None:
    d = SimDevice()
    prof = cuptiprof.profile(device="sim")
    prof.start()
    prof.stop()
    d.reset(virtual_clock=True, cupti_version=version)
    from cuptiprof import _core
    from cuptiprof.data.activities import kinds_of
    from cuptiprof.data.result import from_native
    from cuptiprof.sim.sim_device import library_path

    api = _core.load_cupti(str(library_path()), "test", True)
    session = _core.Session(api=api, kinds=kinds_of(None), keep="latest", budget=32 << 20)
    session.start()
    d.launch("kernel", (7, 1, 1), count=2000)
    d.call(Op.MEMCPY, bytes=123)
    d.call(Op.MEMSET, bytes=45)
    d.synchronize()
    store = session.stop()
    tables = from_native(store.tables(), store.strings())
    assert len(tables["kernels"]) == 2000
    assert set(tables["kernels"]["grid_x"]) == {7}
    assert list(tables["memcpys"]["bytes"]) == [123]
    assert list(tables["memsets"]["bytes"]) == [45]
    assert len(tables["synchronizations"]) == 1
    assert dict(session.losses())["unknown_records"] == 0


def test_dropped_records_are_counted(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.inject(Fault.DROP_RECORDS, a=10)
        device.launch("k", count=1000)
    r = prof.result()
    assert len(r.kernels) == 900
    assert r.losses["cupti_dropped"] == 100
    assert r.losses["unreconciled_launches"] == 100
    assert "100 cupti_dropped" in str(r.summary())


def test_invalid_timestamps_are_losses(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.inject(Fault.ZERO_TIMESTAMPS, a=4)
        device.launch("k", count=100)
    r = prof.result()
    assert (len(r.kernels), len(r.timed().kernels), r.losses["invalid_timestamps"]) == (100, 75, 25)
    assert r.losses["unreconciled_launches"] == 0


@pytest.mark.parametrize(
    "fault", [(Fault.LATE_RECORDS, 7, 50), (Fault.SHUFFLE, 64, 0), (Fault.SLOW_WORKER, 100_000, 0)]
)
def test_late_and_shuffled_records_lose_nothing(sim: SimDevice, fault: tuple[Fault, int, int]) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.inject(fault[0], a=fault[1], b=fault[2])
        with cuptiprof.region("all"):
            device.launch("k", count=5000)
    r = prof.result()
    assert sorted(r.kernels["correlation_id"]) == list(range(1, 5001))
    assert set(r.kernels["region"]) == {"all"}
    assert not r.losses


def launch_at_decoder_pace(prof: cuptiprof.profile, name: str, count: int, **fields: object) -> None:
    """Launch in batches that the decoder keeps up with, as a real GPU's work does."""
    device = SimDevice()
    for _ in range(count // 1000):
        device.launch(name, count=1000, **fields)
        while True:
            counts = prof._session.counts()
            if counts["launches"] - counts["kernels_received"] < 2000:
                break
            time.sleep(0.0005)


def test_another_subscriber_is_a_clear_error_and_leaves_nothing_on(sim: SimDevice) -> None:
    from cuptiprof import _core
    from cuptiprof.data.activities import kinds_of
    from cuptiprof.sim.sim_device import library_path

    api = _core.load_cupti(str(library_path()), "test", True)
    for fault, call, code in (
        ((Fault.OTHER_SUBSCRIBER, "torch.profiler"), "cuptiSubscribe", 39),
        ((Fault.NO_PRIVILEGES, "", 1), "cuptiSubscribe", 35),
        ((Fault.FAIL_CALL, "cuptiActivityEnable", 27, 3), "cuptiActivityEnable", 27),
        ((Fault.FAIL_CALL, "cuptiEnableCallback", 999, 5), "cuptiEnableCallback", 999),
        ((Fault.FAIL_CALL, "cuptiActivityRegisterCallbacks", 1), "cuptiActivityRegisterCallbacks", 1),
    ):
        sim.inject(*fault)
        session = _core.Session(api=api, kinds=kinds_of(None), keep="latest", budget=32 << 20)
        with pytest.raises(CuptiError) as e:
            session.start()
        assert (e.value.code, e.value.call) == (code, call)
        assert e.value.hint
        sim.clear_faults()
        sim.reset(virtual_clock=True)  # refused if anything were still switched on
    session = _core.Session(api=api, kinds=kinds_of(None), keep="latest", budget=32 << 20)
    session.start()
    session.stop()


def test_names_after_a_module_was_unloaded(sim: SimDevice) -> None:
    """CUPTI's name pointers are remembered, but not beyond a module's life: the memory may hold another name then."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        launch_at_decoder_pace(prof, "first_name", 20_000)
        SimDevice().call(Op.MODULE_UNLOAD, domain=DRIVER)
        launch_at_decoder_pace(prof, "second_name", 20_000)
    names = list(prof.result().kernels["name"])
    assert names.count("first_name") == names.count("second_name") == 20_000
