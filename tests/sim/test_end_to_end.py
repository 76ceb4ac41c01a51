"""Launches on the simulated device, all the way to the result."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import cuptiprof
from cuptiprof.errors import BudgetError, CuptiError, DeviceError, SessionError
from cuptiprof.session_result import EmptySelectionWarning
from cuptiprof.sim.device import DRIVER, Fault, Flag, Op, SimDevice


def test_kernels_carry_what_was_launched(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        device = SimDevice()
        device.launch("_Z3addPf", (2, 3, 4), (32, 2, 1), count=3, dynamic_shared_memory=512, stream=9, duration_ns=5000)
    kernels = prof.result().kernels
    assert len(kernels) == 3
    row = kernels.row(0)
    assert row["name"] == "_Z3addPf"
    assert row["stream"] == 9
    assert row["end"] - row["start"] == 5000
    assert [int(kernels[c][0]) for c in ("grid_x", "grid_y", "grid_z", "block_x", "block_y")] == [
        2,
        3,
        4,
        32,
        2,
    ]
    assert int(kernels["dynamic_shared_memory"][0]) == 512
    assert row["thread"] == threading.get_native_id()
    # One stream runs one kernel after another.
    assert (kernels["start"][1:] >= kernels["end"][:-1]).all()


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


def test_graph_nodes_share_a_correlation_id(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        d = SimDevice()
        d.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5)
        d.launch("node", count=4)
        d.call(Op.GRAPH_END_CAPTURE, graph_id=5)
        with cuptiprof.region("replay"):
            d.call(Op.GRAPH_LAUNCH, graph_id=5)
            d.call(Op.GRAPH_LAUNCH, graph_id=5)
    r = prof.result()
    assert len(r.kernels) == 8  # captured launches do not run
    assert r.metadata["launches"]["launches"] == 0
    assert len(set(r.kernels["correlation_id"])) == 2
    assert len(set(r.kernels["graph_node_id"])) == 4
    assert set(r.kernels["graph_id"]) == {5}
    assert set(r.kernels["region"]) == {"replay"}
    assert not r.losses


def test_graph_trace_replaces_node_records(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel", "graph"]) as prof:
        d = SimDevice()
        d.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=2)
        d.launch("node", count=3)
        d.call(Op.GRAPH_END_CAPTURE, graph_id=2)
        d.call(Op.GRAPH_LAUNCH, graph_id=2)
    assert len(prof.result().kernels) == 0
    assert list(prof.result().graph_launches["graph_id"]) == [2]


@pytest.mark.parametrize("version", [120600, 130001, 130400])
def test_every_record_layout_decodes_to_the_same_rows(version: int) -> None:
    d = SimDevice()
    prof = cuptiprof.profile(device="sim")
    prof.start()
    prof.stop()
    d.reset(virtual_clock=True, cupti_version=version)
    from cuptiprof import _core
    from cuptiprof.activities import kinds_of
    from cuptiprof.result import from_native
    from cuptiprof.sim.device import library_path

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


def test_launches_equal_records_plus_losses_when_the_pool_is_dry(sim: SimDevice) -> None:
    with cuptiprof.profile(
        device="sim", activities=["kernel"], buffer_size="64 KB", buffer_count=1, budget="16 MB"
    ) as prof:
        device = SimDevice()
        threads = [
            threading.Thread(target=lambda: device.run(device.ops(20_000, Op.KERNEL, name="k"))) for _ in range(8)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    r = prof.result()
    counts = r.metadata["launches"]
    assert counts["launches"] == 160_000
    assert r.losses["pool_exhausted"] > 0
    assert r.losses["unreconciled_launches"] == 0
    assert counts["launches"] == len(r.kernels) + counts["kernels_lost_in_pool"]
    # Device and context records may have been among the lost ones.
    assert 0 <= r.losses["pool_exhausted"] - counts["kernels_lost_in_pool"] <= 2


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


def test_invalid_timestamps_are_losses_not_rows(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.inject(Fault.ZERO_TIMESTAMPS, a=4)
        device.launch("k", count=100)
    r = prof.result()
    assert (len(r.kernels), r.losses["invalid_timestamps"]) == (75, 25)
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


def test_keep_latest_and_first(sim: SimDevice) -> None:
    n = 400_000
    kept = {}
    for keep in ("latest", "first"):
        with cuptiprof.profile(device="sim", activities=["kernel"], keep=keep, budget="12 MB") as prof:
            launch_at_decoder_pace(prof, "k", n)
        r = prof.result()
        ids = np.sort(r.kernels["correlation_id"])
        kept[keep] = ids
        assert r.losses["pool_exhausted"] == 0
        assert len(ids) + r.losses["budget_evicted"] == n + 2 - len(r.devices) - len(r.contexts)
        assert 0 < len(ids) < n
    assert kept["latest"][-1] == n
    assert kept["first"][0] == 1
    assert kept["first"][-1] < n


def test_spill_keeps_everything(sim: SimDevice, tmp_path: object) -> None:
    with (
        cuptiprof.profile(
            device="sim", activities=["kernel"], keep="spill", budget="16 MB", spill_dir=str(tmp_path)
        ) as prof,
        cuptiprof.region("spilled"),
    ):
        for i in range(40):
            launch_at_decoder_pace(prof, f"kernel_{i % 3}", 10_000, grid=(i + 1, 1, 1))
    r = prof.result()
    assert prof._spill is not None and prof._spill._segments > 1
    assert r.losses["spill_dropped"] == 0
    assert sorted(r.kernels["correlation_id"]) == list(range(1, 400_001))
    assert set(r.kernels["name"]) == {"kernel_0", "kernel_1", "kernel_2"}
    assert sorted(set(r.kernels["grid_x"])) == list(range(1, 41))
    assert set(r.kernels["region"]) == {"spilled"}


def test_the_first_session_is_named_to_the_second(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim"):
        with pytest.raises((SessionError, DeviceError)) as e:
            cuptiprof.profile(device="sim").start()
        assert "stop" in str(e.value)
    with cuptiprof.profile(device="sim") as prof:
        SimDevice().launch("k")
    assert len(prof.result().kernels) == 1


def test_another_subscriber_is_a_clear_error_and_leaves_nothing_on(sim: SimDevice) -> None:
    from cuptiprof import _core
    from cuptiprof.activities import kinds_of
    from cuptiprof.sim.device import library_path

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


def test_states(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim")
    with pytest.raises(SessionError, match="without start"):
        prof.stop()
    with pytest.raises(SessionError):
        prof.result()
    prof.start()
    with pytest.raises(SessionError):
        prof.start()
    device = SimDevice()
    device.launch("a")
    prof.pause()
    with pytest.raises(SessionError):
        prof.pause()
    device.launch("b")
    prof.resume()
    device.launch("c")
    result = prof.stop()
    assert list(result.kernels["name"]) == ["a", "c"]
    assert not result.losses
    with pytest.raises(SessionError):
        prof.stop()


def test_profile_from_start_off(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", profile_from_start=False) as prof:
        device = SimDevice()
        device.launch("before")
        assert prof.state == "armed"
        device.call(Op.PROFILER_START)
        with cuptiprof.region("window"):
            device.launch("inside", count=2)
        device.call(Op.PROFILER_STOP)
        device.launch("after")
    result = prof.result()
    assert list(result.kernels["name"]) == ["inside", "inside"]
    assert set(result.kernels["region"]) == {"window"}
    assert not result.losses


def test_schedule(sim: SimDevice) -> None:
    seen = []
    prof = cuptiprof.profile(
        device="sim",
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_ready=lambda p: seen.append(list(p.result().kernels["name"])),
    )
    with prof:
        for step in range(10):
            SimDevice().launch(f"step{step}")
            prof.step()
    assert seen == [["step2", "step3"], ["step6", "step7"]]
    assert [n for n in prof.result().markers["name"] if n.startswith("ProfilerStep")]


def test_budget_errors() -> None:
    for arguments in ({"budget": "1 KB"}, {"budget": "many"}, {"keep": "all"}, {"budget": 0}):
        with pytest.raises(BudgetError):
            cuptiprof.profile(device="sim", **arguments).start()
    with pytest.raises(DeviceError):
        cuptiprof.profile(device="gpu").start()
    with cuptiprof.profile(device="sim"):
        pass


def test_filters_while_collecting(sim: SimDevice) -> None:
    def run(**options: object) -> cuptiprof.Result:
        with cuptiprof.profile(device="sim", **options) as prof:
            d = SimDevice()
            with cuptiprof.region("fwd"):
                d.launch("sgemm_128", count=3)
                d.launch("relu", count=3)
            with cuptiprof.region("bwd"):
                d.launch("sgemm_64", count=3)
        return prof.result()

    assert set(run(kernels="*gemm*").kernels["name"]) == {"sgemm_128", "sgemm_64"}
    assert set(run(kernels="*gemm*", regions="fwd").kernels["name"]) == {"sgemm_128"}
    picked = run(kernels="regex:gemm", launch_skip=2, launch_count=2)
    assert list(picked.kernels["correlation_id"]) == [3, 7]
    assert picked.losses["filter_rejected"] == 7
    nvprof = run(kernels=cuptiprof.KernelFilter.from_nvprof("::gemm:2"))
    assert list(nvprof.kernels["name"]) == ["sgemm_128", "sgemm_64"]
    with pytest.warns(EmptySelectionWarning, match="sgemm_64"):
        assert len(run(kernels="sgem_64").kernels) == 0


def test_a_forked_child_is_left_alone(sim: SimDevice) -> None:
    import os

    with cuptiprof.profile(device="sim") as prof:
        SimDevice().launch("parent")
        pid = os.fork()
        if pid == 0:
            try:
                with cuptiprof.region("child"):
                    pass
                prof.stop()
            except SessionError:
                os._exit(0)
            except BaseException:
                os._exit(2)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        SimDevice().launch("parent")
    assert len(prof.result().kernels) == 2


def test_sessions_cost_what_the_first_did(sim: SimDevice) -> None:
    """200 sessions: no growth in memory, threads or file descriptors."""
    import os

    def measure() -> tuple[int, int, int]:
        with open("/proc/self/statm") as f:
            rss = int(f.read().split()[1])
        return rss * os.sysconf("SC_PAGESIZE"), threading.active_count(), len(os.listdir("/proc/self/fd"))

    def session() -> None:
        with cuptiprof.profile(device="sim", budget="16 MB") as prof, cuptiprof.region("r"):
            SimDevice().launch("k", count=1000)
        assert len(prof.result().kernels) == 1000

    for _ in range(20):
        session()
    before = measure()
    tasks = len(os.listdir("/proc/self/task"))
    for _ in range(180):
        session()
    after = measure()
    assert after[1] <= before[1] and after[2] <= before[2]  # fewer: of another test, ending meanwhile
    assert len(os.listdir("/proc/self/task")) <= tasks
    assert after[0] - before[0] < 4 << 20


def test_names_after_a_module_was_unloaded(sim: SimDevice) -> None:
    """CUPTI's name pointers are remembered, but not beyond a module's life: the memory may hold another name then."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        launch_at_decoder_pace(prof, "first_name", 20_000)
        SimDevice().call(Op.MODULE_UNLOAD, domain=DRIVER)
        launch_at_decoder_pace(prof, "second_name", 20_000)
    names = list(prof.result().kernels["name"])
    assert names.count("first_name") == names.count("second_name") == 20_000


def test_cupti_s_own_overhead(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel", "overhead"], buffer_size="64 KB") as prof:
        SimDevice().launch("k", count=1000)
    overhead = prof.result().overhead
    assert len(overhead) > 1
    assert set(overhead["kind"]) <= {1 << 16, 7 << 16}  # buffer flush, activity buffer request
    assert set(overhead["thread"]) == {threading.get_native_id()}
    assert len(prof.result().kernels) == 1000


def test_a_disk_that_fills_while_spilling(sim: SimDevice, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program goes on; the rows are counted and the report says why."""
    import errno

    import pyarrow as pa

    class Full:
        def __init__(self, *args: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pa, "OSFile", Full)
    with cuptiprof.profile(
        device="sim", activities=["kernel"], keep="spill", budget="16 MB", spill_dir=str(tmp_path)
    ) as prof:
        launch_at_decoder_pace(prof, "k", 200_000)
    r = prof.result()
    assert len(r.kernels) + r.losses["spill_dropped"] == 200_000 + 2 - len(r.devices) - len(r.contexts)
    assert r.losses["spill_dropped"] > 0
    assert "No space left" in str(r.summary())
