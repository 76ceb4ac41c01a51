"""What each counter strategy returns against the known truth, and refused privileges.

Only the stand-in has invented values that are known for every metric, and faults that can be scripted: these stay here.
Everything else about counters is in tests/behaviours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof import _core
from cuptiprof.counters.live import CounterWarning
from cuptiprof.errors import CuptiError, MetricError
from cuptiprof.metrics import Metric, resolve
from cuptiprof.sim.sim_device import Fault, Op, SimDevice

CHEAP = ["achieved_occupancy", "ipc", "dram_read_throughput"]  # one pass together


_NAMES = SimDevice()  # keeps the names of the ops alive


def kernel_ops(kinds: int, seed: int = 7) -> Any:
    """One op a kind, each with its own name, shape and duration."""
    random = np.random.default_rng(seed)
    device = _NAMES
    parts = [
        device.ops(
            1,
            Op.KERNEL,
            name=f"kernel_{i}",
            grid=(int(random.integers(1, 4000)), int(random.integers(1, 4)), 1),
            block=(int(random.integers(1, 9)) * 32, 1, 1),
            registers_per_thread=int(random.integers(16, 128)),
            duration_ns=int(random.integers(5_000, 200_000)),
        )
        for i in range(kinds)
    ]
    return np.concatenate(parts)


def sixty_metrics(chip: str = "GH100") -> list[str]:
    """The first 60 nvprof metrics, in catalogue order; of one or several passes each."""
    return [m.name for m in resolve("all", chip)][:60]


def sixty_of_one_pass(*, sampling: bool = False) -> list[str]:
    """60 nvprof metrics none of whose inputs needs several passes by itself."""
    library = cuptiprof.device.devices.open_device("sim").library
    planner = _core.MetricPlanner(library, "GH100", sampling)

    def fits(metric: Metric) -> bool:
        try:
            if sampling:  # all inputs at once
                return sum(g.passes for g in planner.plan(list(metric.inputs))) == 1
            return all(sum(g.passes for g in planner.plan([i])) == 1 for i in metric.inputs)
        except MetricError:  # not counted by sampling
            return False

    return [m.name for m in resolve("all", "GH100") if fits(m)][:60]


def truth_of(name: str, ops: Any, chip: str = "GH100") -> Any:
    """A metric of each op from the model's own values of its inputs."""
    (metric,) = resolve([name], chip)
    device = SimDevice()
    return np.broadcast_to(metric.value({i: device.true_metric(i, ops) for i in metric.inputs}), len(ops))


def assert_true(result: cuptiprof.Result, names: list[str], ops: Any, index_of: Any) -> None:
    """Every row of metric_ranges has the truth of its kernel, for every metric."""
    index = np.array([index_of[n] for n in result.metric_ranges["name"]])
    for name in names:
        np.testing.assert_allclose(
            result.counters[name], truth_of(name, ops)[index], rtol=1e-9, atol=1e-9, err_msg=name, equal_nan=True
        )


@pytest.fixture
def ops() -> Any:
    return kernel_ops(40)


INDEX = {f"kernel_{i}": i for i in range(40)}


def test_replay_returns_the_truth_of_60_metrics_over_1000_kernels(ops: Any) -> None:
    names = sixty_metrics()
    order = np.random.default_rng(1).integers(0, 40, 1000)
    with cuptiprof.profile(device="sim", metrics=names, strategy="replay") as prof:
        SimDevice().run(ops[order])
    result = prof.result()
    assert len(names) == 60 and len(result.metric_ranges) == 1000
    assert result.metadata["counters"]["passes"] > 3
    assert list(result.metric_ranges["name"]) == [f"kernel_{i}" for i in order]
    assert_true(result, names, ops, INDEX)
    assert np.isfinite(result.counters["achieved_occupancy"]).all()
    assert not result.losses
    # Each launch has its values, joined by correlation ID.
    np.testing.assert_array_equal(result.kernels["inst_executed"], result.counters["inst_executed"])


def test_iterate_gives_the_means_of_replay_without_a_replay(ops: Any) -> None:
    names = sixty_of_one_pass()
    order = np.tile(np.arange(40), 25)
    with cuptiprof.profile(device="sim", metrics=names, strategy="iterate") as prof:
        device = SimDevice()
        before = device.truth()
        device.run(ops[order])
        after = device.truth()
    result = prof.result()
    groups = len(result.metadata["counters"]["groups"])
    assert len(names) == 60 and groups > 2
    assert after["kernels"] - before["kernels"] == 1000  # nothing ran twice
    assert after["kernels_replayed"] == before["kernels_replayed"] and after["bytes_saved"] == before["bytes_saved"]
    assert len(result.metric_ranges) == 40 and list(result.metric_ranges["occurrences"]) == [25] * 40
    assert set(result.metric_ranges["passes"]) == {groups}
    assert_true(result, names, ops, INDEX)
    spread = result.counters.column("inst_executed", "spread")
    assert (spread < 1e-9).all() and not result.losses


def test_a_metric_with_inputs_of_two_groups_is_computed_from_means(ops: Any) -> None:
    """Of a ratio whose parts change from launch to launch, the ratio of the means, not the mean of the ratios."""
    (metric,) = resolve(["global_hit_rate"], "GH100")
    device = SimDevice()
    truth: list[dict[str, float]] = []
    with cuptiprof.profile(device="sim", metrics=[metric.name, "ipc"], strategy="iterate") as prof:
        for i in range(8):
            device.set_counter("l1tex__t_sectors_pipe_lsu_mem_global_op_ld", 1e8 * (i + 1) ** 2, "kernel_0")
            device.set_counter("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit", 1e7 * (i + 1), "kernel_0")
            truth.append({name: float(device.true_metric(name, ops[:1])[0]) for name in metric.inputs})
            device.run(ops[:1])
    result = prof.result()
    first, second = (set(g) for g in result.metadata["counters"]["groups"])
    assert first & set(metric.inputs) and second & set(metric.inputs)
    # Occurrences take the groups in turn.
    means = {n: np.array([np.mean([t[n] for t in truth[0 if n in first else 1 :: 2]])]) for n in metric.inputs}
    row = result.metrics.where(result.metrics["metric"] == metric.name).row(0)
    assert row["from_means"] == 1 and row["group"] == 0 and row["count"] == 4 and np.isnan(row["spread"])
    np.testing.assert_allclose(row["value"], metric.value(means)[0], rtol=1e-12)
    ratios = metric.value({n: np.array([t[n] for t in truth]) for n in metric.inputs})
    assert abs(row["value"] - ratios.mean()) > 1
    assert set(result.metrics.where(result.metrics["metric"] == "ipc")["from_means"]) == {0}


def test_only_selected_kernels_are_touched(ops: Any) -> None:
    with cuptiprof.profile(
        device="sim", metrics=["gld_efficiency", *CHEAP], kernels="regex:kernel_(1|2)$", regions="fwd/*", launch_count=3
    ) as prof:
        device = SimDevice()
        before = device.truth()
        for _ in range(5):
            device.run(ops[:4])
            with cuptiprof.region("fwd"), cuptiprof.region("attn"):
                device.run(ops[:4])
        after = device.truth()
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["kernel_1", "kernel_2", "kernel_1"]
    assert set(result.metric_ranges["region"]) == {"fwd/attn"}
    passes = result.metadata["counters"]["passes"]
    assert after["kernels_replayed"] - before["kernels_replayed"] == 3 * (passes - 1)
    assert after["ranges_collected"] - before["ranges_collected"] == 3
    assert list(result.kernels["correlation_id"]) == list(result.metric_ranges["correlation_id"])


def test_nothing_runs_twice_but_what_is_replayed(sim: SimDevice) -> None:
    one_pass = ["ipc", "inst_executed"]
    two_groups = [*one_pass, "gld_efficiency", "l1tex__t_sector_hit_rate.pct"]

    def program() -> dict[str, int]:
        sim.reset()
        for i in range(30):
            with cuptiprof.region(f"r{i % 3}"):
                sim.launch(f"k{i % 7}", stream=1 + i % 3)
                sim.call(Op.MEMCPY, bytes=4096)
        sim.synchronize()
        return sim.truth()

    plain = program()
    for strategy in ("replay", "iterate", "range", "sample"):
        for metrics in (one_pass, two_groups) if strategy in ("replay", "iterate") else (one_pass,):
            sim.reset()
            before = sim.truth()
            with cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy) as prof:
                for i in range(30):
                    with cuptiprof.region(f"r{i % 3}"):
                        sim.launch(f"k{i % 7}", stream=1 + i % 3)
                        sim.call(Op.MEMCPY, bytes=4096)
                sim.synchronize()
            truth = sim.truth()
            for what in ("kernels", "memcpys"):
                assert truth[what] - before[what] == plain[what]
            passes = prof.result().metadata["counters"]["passes"]
            assert truth["kernels_replayed"] == (30 * (passes - 1) if strategy == "replay" else 0)
            assert [str(n) for n in prof.result().kernels["name"]] == [f"k{i % 7}" for i in range(30)]


def test_range_returns_the_truth_of_60_metrics_over_1000_kernels(ops: Any) -> None:
    """But for those that time has a part in: a region lasts from its entry to its exit, the host's time included."""
    names = sixty_metrics()
    order = np.random.default_rng(2).integers(0, 40, 1000)

    def work() -> None:
        device = SimDevice()
        for i in order:
            with cuptiprof.region(f"kernel_{i}"):
                device.run(ops[i : i + 1])

    with cuptiprof.profile(device="sim", metrics=names, strategy="range", repeatable=True) as prof:
        prof.repeat(work)
    result = prof.result()
    assert len(names) == 60 and len(result.metric_ranges) == 1000 and not result.losses
    over_time = result.metadata["counters"]["over_the_regions_time"]
    assert 0 < len(over_time) < 30 and set(over_time) <= set(names)
    assert_true(result, [n for n in names if n not in over_time], ops, INDEX)
    index = np.array([INDEX[n] for n in result.metric_ranges["name"]])
    for name in over_time:
        truth, value = truth_of(name, ops)[index], result.counters[name]
        known = np.isfinite(truth) & (truth > 0)
        assert (value[known] < truth[known]).all(), name


def test_samples_give_the_kernels_own_values() -> None:
    device_ops = kernel_ops(4)
    device_ops["duration_ns"] = 5_000_000
    names = ["achieved_occupancy", "ipc", "dram_read_bytes"]
    with cuptiprof.profile(device="sim", metrics=names, strategy="sample", sampling_interval="100us") as prof:
        device = SimDevice()
        device.run(np.tile(device_ops, 3))
        device.synchronize()
    result = prof.result()
    samples = result.metric_ranges["kind"] == 4
    assert samples.sum() > 400
    kernels = result.metric_ranges["kind"] == 2
    assert sorted(result.metric_ranges["name"][kernels]) == [f"kernel_{i}" for i in range(4)]
    for row in np.flatnonzero(kernels):
        i = int(str(result.metric_ranges["name"][row]).split("_")[1])
        for name in names:  # samples that lie inside a kernel saw nothing else: no error but that of counting time
            np.testing.assert_allclose(
                result.counters[name][row], truth_of(name, device_ops)[i], rtol=1e-3, err_msg=name
            )
        assert result.counters.column("ipc", "count")[row] >= 3 * 45
    assert np.isfinite(result.kernels["ipc"]).all()


def test_samples_after_a_pause_have_nothing_of_what_ran_in_it() -> None:
    """The first sample after a start has it, as on hardware, and is left out."""
    with cuptiprof.profile(
        device="sim", metrics=["inst_executed"], strategy="sample", sampling_interval="100us"
    ) as prof:
        device = SimDevice()
        device.launch("warm", duration_ns=1000)
        device.synchronize()
        prof.pause()
        device.launch("unseen", grid=(1000, 1, 1), duration_ns=1_000_000)
        device.synchronize()
        prof.resume()
        device.launch("seen", duration_ns=2_000_000)
        device.synchronize()
    result = prof.result()
    truth = float(
        truth_of(
            "inst_executed",
            device.ops(1, Op.KERNEL, name="seen", grid=(1, 1, 1), block=(128, 1, 1), duration_ns=2_000_000),
        )[0]
    )
    samples = result.metric_ranges["kind"] == 4
    # A sample inside the kernel has a twentieth of it; none has more.
    values = result.counters["inst_executed"][samples]
    assert samples.sum() >= 10 and values.max() == pytest.approx(truth / 20, rel=1e-3)


def test_sample_returns_the_truth_of_60_metrics_over_1000_kernels(ops: Any) -> None:
    """One session a pass group: sampling reads one pass. The error is that of counting time in whole samples."""
    names = sixty_of_one_pass(sampling=True)
    assert len(names) == 60
    planner = _core.MetricPlanner(cuptiprof.device.devices.open_device("sim").library, "GH100", True)
    of = {m.name: set(m.inputs) for m in resolve(names, "GH100")}
    groups = [set(g.metrics) for g in planner.one_pass_groups(sorted(set().union(*of.values())))]
    together = [[n for n in names if of[n] <= g] for g in groups]
    apart = [n for n in names if not any(n in t for t in together)]
    ops["duration_ns"] = 100_000
    order = np.tile(np.arange(40), 25)
    for group in [*filter(None, together), *([n] for n in apart)]:
        with cuptiprof.profile(device="sim", metrics=group, strategy="sample", sampling_interval="10us") as prof:
            device = SimDevice()
            device.run(ops[order])
            device.synchronize()
        result = prof.result()
        rows = np.flatnonzero(result.metric_ranges["kind"] == 2)
        index = [INDEX[n] for n in result.metric_ranges["name"][rows]]
        assert sorted(index) == list(range(40))
        for name in group:
            np.testing.assert_allclose(
                result.counters[name][rows],
                truth_of(name, ops)[index],
                rtol=2e-3,
                atol=1e-9,
                err_msg=name,
                equal_nan=True,
            )


def test_denied_privileges_are_said_with_the_driver_option(ops: Any) -> None:
    device = SimDevice()
    prof = cuptiprof.profile(device="sim", metrics=CHEAP)
    prof.start()
    device.inject(Fault.NO_PRIVILEGES, a=1)
    device.run(ops)
    with pytest.warns(CounterWarning, match="NVreg_RestrictProfilingToAdminUsers"):
        result = prof.stop()
    device.clear_faults()
    assert len(result.kernels) == 40 and len(result.metric_ranges) == 0 and result.losses["uncounted"] == 40


def test_sampling_without_privileges_fails_at_the_start_and_leaves_nothing(ops: Any) -> None:
    with cuptiprof.profile(device="sim"):
        pass
    prof = cuptiprof.profile(device="sim", metrics=CHEAP, strategy="sample")
    SimDevice().inject(Fault.FAIL_CALL, "cuptiPmSamplingEnable", a=35)
    with pytest.raises(CuptiError) as caught:
        prof.start()
    SimDevice().clear_faults()
    assert caught.value.call == "cuptiPmSamplingEnable" and caught.value.code == 35
    assert "NVreg_RestrictProfilingToAdminUsers" in caught.value.hint
    with cuptiprof.profile(device="sim") as again:
        SimDevice().run(ops[:1])
    assert len(again.result().kernels) == 1
