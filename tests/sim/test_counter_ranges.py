"""Ranges on the simulated device against the truth it states: kernel replay, user ranges, passes."""

from __future__ import annotations

import ctypes
import math
import time

import pytest
from counter_abi import CounterApi
from counter_objects import (
    APPLICATION_REPLAY,
    AUTO,
    ONE_PASS,
    SEVERAL,
    TWO_PASSES,
    USER,
    USER_REPLAY,
    Ranges,
    kernel,
    passes,
)

import cuptiprof
from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import Fault, Flag, Op, SimDevice


@pytest.fixture
def api(sim: SimDevice) -> CounterApi:
    return CounterApi()


@pytest.mark.parametrize("metrics", [ONE_PASS, TWO_PASSES, SEVERAL])
def test_each_kernel_is_a_range_with_its_true_values(api: CounterApi, sim: SimDevice, metrics: list[str]) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, metrics)
    launches = [kernel(sim, n, d) for n, d in (("a", 5000), ("b", 7000), ("a", 5000))]
    before = sim.truth()
    ranges.start()
    for op in launches:
        sim.run(op)
    stopped = ranges.stop()
    assert (stopped.all_submitted, ranges.decode(), ranges.count()) == (1, 0, 3)
    for i, op in enumerate(launches):
        assert ranges.name(i) == str(i)
        assert ranges.values(i) == [sim.true_metric(m, op)[0] for m in metrics]
    after, n = sim.truth(), passes(api, metrics)
    assert after["kernels"] - before["kernels"] == 3
    assert after["kernels_replayed"] == 3 * (n - 1)
    written = sum(int(sim.true_metric("dram__bytes_write.sum", op)[0]) for op in launches) if n > 1 else 0
    assert (after["bytes_saved"], after["bytes_restored"]) == (written, written * (n - 1))
    assert (after["ranges_collected"], after["counter_configs"]) == (3, 1)


def test_replay_takes_time_and_serialises(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    sim.synchronize()
    spent = {}
    for metrics in (ONE_PASS, TWO_PASSES):
        ranges = Ranges(api, metrics)
        ranges.start()
        begin = sim.now()
        sim.launch("a", stream=11, duration_ns=1_000_000)
        spent[len(metrics)] = sim.now() - begin
        ranges.stop()
        ranges.disable()
    assert 1_000_000 < spent[len(ONE_PASS)] < 1_100_000
    copied = sim.truth()["bytes_saved"] + sim.truth()["bytes_restored"]
    assert spent[len(TWO_PASSES)] > 2_000_000 + copied * 1e6 / 3_352_320_000
    # Not started: the launch returns at once.
    begin = sim.now()
    sim.launch("a", duration_ns=1_000_000)
    assert sim.now() - begin < 10_000


def test_a_replayed_kernel_has_one_record_of_its_last_execution(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        sim.launch("warm up")
        ranges = Ranges(CounterApi(), TWO_PASSES)
        ranges.start()
        begin = sim.now()
        sim.run(kernel(sim, "counted", 7000))
        end = sim.now()  # the launch returned when the kernel was done
        ranges.stop()
        ranges.decode()
    kernels = prof.result().kernels
    assert list(kernels["name"]) == ["warm up", "counted"]
    assert kernels["end"][1] - kernels["start"][1] == 7000
    assert begin + 7000 < kernels["start"][1] < kernels["end"][1] <= end
    assert sim.truth()["kernels_replayed"] == 1


def test_the_real_clock_waits_for_every_pass(sim: SimDevice) -> None:
    sim.reset()
    sim.launch("warm up")
    ranges = Ranges(CounterApi(), TWO_PASSES)
    op = kernel(sim, "k", 3_000_000)
    ranges.start()
    begin = time.monotonic_ns()
    sim.run(op)
    assert time.monotonic_ns() - begin >= 2 * 3_000_000
    ranges.stop()
    assert (ranges.decode(), ranges.values(0)) == (0, [sim.true_metric(m, op)[0] for m in TWO_PASSES])


def test_a_stream_says_that_it_is_captured(sim: SimDevice) -> None:
    api, status = CounterApi(), ctypes.c_int(-1)
    sim.launch("warm up")

    def captured() -> int:
        assert api.lib.cuStreamIsCapturing(None, ctypes.byref(status)) == 0
        return status.value

    assert captured() == 0
    sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5)
    assert captured() == 1
    sim.call(Op.GRAPH_END_CAPTURE, graph_id=5)
    assert captured() == 0
    assert api.lib.cuStreamIsCapturing(ctypes.c_void_p(0x1234), ctypes.byref(status)) == 400


def test_graph_nodes_are_ranges(api: CounterApi, sim: SimDevice) -> None:
    sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5)
    nodes = [kernel(sim, n) for n in ("x", "y")]
    for op in nodes:
        sim.run(op)
    sim.call(Op.GRAPH_END_CAPTURE, graph_id=5)
    ranges = Ranges(api, TWO_PASSES)
    ranges.start()
    sim.call(Op.GRAPH_LAUNCH, graph_id=5)
    ranges.stop()
    assert (ranges.decode(), ranges.count()) == (0, 2)
    assert [ranges.values(i) for i in range(2)] == [[sim.true_metric(m, n)[0] for m in TWO_PASSES] for n in nodes]


def test_ranges_beyond_the_limit_are_dropped_and_counted(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, ONE_PASS, max_ranges=3, rows=5)
    ranges.start()
    sim.launch("k", count=5)
    ranges.stop()
    assert (ranges.decode(), ranges.count()) == (2, 3)
    ranges.start()
    sim.launch("k", count=3)  # the image has room for two more
    ranges.stop()
    assert (ranges.decode(), ranges.count()) == (1, 5)
    assert sim.truth()["ranges_dropped"] == 3
    sim.inject(Fault.DROP_RANGES, a=2)
    fresh = ranges.settings["image"]
    ranges.do("CounterDataImageInitialize", size=len(fresh), image=fresh)
    ranges.start()
    sim.launch("k", count=3)
    ranges.stop()
    assert (ranges.decode(), ranges.count()) == (1, 2)


@pytest.mark.parametrize("how", ["name", "flag"])
def test_a_communicating_kernel_hangs_under_replay(api: CounterApi, sim: SimDevice, how: str) -> None:
    sim.launch("warm up")
    fields = {"name": "ncclDevKernel_AllReduce"} if how == "name" else {"name": "sum", "flags": Flag.COMMUNICATES}
    op = sim.ops(1, Op.KERNEL, **fields)
    for metrics, hangs in ((ONE_PASS, False), (TWO_PASSES, True)):
        ranges = Ranges(api, metrics)
        ranges.start()
        begin = sim.now()
        if hangs:
            with pytest.raises(DeviceError, match="702"):
                sim.run(op)
            assert sim.now() - begin >= 2_000_000_000
        else:
            sim.run(op)
        ranges.stop()
        ranges.decode()
        assert ranges.count() == (0 if hangs else 1)
        ranges.disable()


def test_two_contexts_have_their_own_ranges(api: CounterApi, sim: SimDevice) -> None:
    sim.call(Op.CONTEXT_CREATE, context=1)
    first = Ranges(api, ONE_PASS)
    sim.call(Op.CONTEXT_CREATE, context=2)
    second = Ranges(api, ONE_PASS)
    first.start()
    second.start()
    ops = [kernel(sim, n, context=c) for n, c in (("a", 1), ("b", 2), ("c", 1))]
    for op in ops:
        sim.run(op)
    for ranges, mine in ((first, ops[::2]), (second, ops[1:2])):
        ranges.stop()
        assert ranges.decode() == 0
        assert ranges.count() == len(mine)
        for i, op in enumerate(mine):
            assert ranges.values(i) == [sim.true_metric(m, op)[0] for m in ONE_PASS]


def test_a_user_range_sums_its_kernels(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    metrics = [
        "sm__inst_executed.sum",
        "gpu__time_duration.sum",
        "sm__cycles_elapsed.avg",
        "lts__t_sector_hit_rate.ratio",
    ]
    ranges = Ranges(api, metrics, mode=USER, replay=USER_REPLAY)
    a, b = kernel(sim, "a", 5000), kernel(sim, "b", 9000)
    all_submitted = []
    while not all_submitted or not all_submitted[-1]:
        sim.synchronize()
        ranges.start()
        ranges.push("step")
        sim.run(a)
        sim.advance(sim.now() + 50_000)  # the GPU has nothing to do
        sim.run(b)
        sim.synchronize()
        ranges.pop()
        all_submitted.append(ranges.stop().all_submitted)
    assert all_submitted == [0, 1]
    assert (ranges.decode(), ranges.count(), ranges.name(0)) == (0, 1, "step")
    instructions, time, cycles, hit_rate = ranges.values(0)
    assert instructions == sum(sim.true_metric(metrics[0], op)[0] for op in (a, b))
    assert 9000 + 50_000 < time < 14_000 + 60_000  # from the push to the pop
    assert cycles == pytest.approx(time * 1.98)
    hits, sectors = (
        sum(sim.true_metric(f"lts__t_sectors{s}.sum", op)[0] for op in (a, b)) for s in ("_lookup_hit", "")
    )
    assert hit_rate == hits / sectors
    assert sim.truth()["kernels_replayed"] == 0


def test_nested_ranges_are_collected_level_by_level(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    metrics = ["sm__inst_executed.sum"]
    ranges = Ranges(api, metrics, mode=USER, replay=USER_REPLAY, levels=2)
    ops = {n: kernel(sim, n) for n in "abc"}
    answers = []
    for _ in range(2):
        sim.synchronize()
        ranges.start()
        ranges.push("step")
        sim.run(ops["a"])
        sim.synchronize()
        for n in "bc":
            ranges.push(f"layer {n}")
            sim.run(ops[n])
            sim.synchronize()
            ranges.pop()
        ranges.pop()
        s = ranges.stop()
        answers.append((s.all_submitted, s.pass_index, s.target_level))
    assert answers == [(0, 0, 2), (1, 0, 1)]
    ranges.decode()
    values = {ranges.name(i, "."): ranges.values(i)[0] for i in range(ranges.count())}
    true = {n: sim.true_metric(metrics[0], op)[0] for n, op in ops.items()}
    assert values == {"step": sum(true.values()), "step.layer b": true["b"], "step.layer c": true["c"]}


def test_application_replay_collects_the_pass_it_is_told(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    metrics = ["lts__t_sectors_lookup_hit.sum", "lts__t_sectors.sum", "lts__t_sector_hit_rate.pct"]
    ranges = Ranges(api, metrics, mode=USER, replay=APPLICATION_REPLAY)
    op, done = kernel(sim, "k"), 0
    for index in range(2):
        ranges.set_config(pass_index=index)
        sim.synchronize()
        ranges.start()
        ranges.push("all")
        sim.run(op)
        ranges.pop()
        done = ranges.stop().all_submitted
        ranges.decode()
        assert ranges.count() == 1
        assert math.isnan(ranges.values(0)[2]) == (index == 0)  # until both passes are there
    assert done == 1
    assert ranges.values(0) == [sim.true_metric(m, op)[0] for m in metrics]


def test_automatic_ranges_without_kernel_replay(api: CounterApi, sim: SimDevice) -> None:
    sim.launch("warm up")
    ranges = Ranges(api, TWO_PASSES, mode=AUTO, replay=USER_REPLAY)
    ops = [kernel(sim, n) for n in "ab"]
    for _ in range(2):
        ranges.start()
        for op in ops:
            sim.run(op)
        ranges.stop()
    assert (ranges.decode(), ranges.count()) == (0, 2)
    assert [ranges.values(i) for i in range(2)] == [[sim.true_metric(m, op)[0] for m in TWO_PASSES] for op in ops]
    assert sim.truth()["kernels_replayed"] == 0
