"""Counters of launches: which are selected, what they are told apart by, and what each strategy gives."""

from __future__ import annotations

import numpy as np
import pytest
from behaviour_fixtures import why_denied
from gpu import ScenarioGpu
from scenarios import CHEAP, ONE_PASS, ROTATED, SEVERAL, collected, counted, launched, measured

import cuptiprof

pytest_plugins = ["behaviour_fixtures"]
counting = pytest.mark.usefixtures("counting")
NAMES = [f"kernel_{i}" for i in range(8)]


@counting
@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_each_launch_has_its_own_values(gpu: ScenarioGpu, metrics: list[str]) -> None:
    gpu.prepare(*NAMES)
    order = np.random.default_rng(1).integers(0, len(NAMES), 200)

    def body() -> None:
        for i in order:
            gpu.launch(NAMES[i], (int(i) + 1, 1, 1))

    result = collected(gpu, body, metrics=metrics, strategy="replay")
    assert (result.metadata["counters"]["passes"] > 1) == (metrics is SEVERAL)
    assert list(result.metric_ranges["name"]) == [NAMES[i] for i in order] == launched(result)
    truth = [gpu.instructions(NAMES[i], (int(i) + 1, 1, 1)) for i in order]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)
    np.testing.assert_array_equal(result.kernels["inst_executed"], result.counters["inst_executed"])
    assert not result.losses


def test_kernels_of_two_names_differ(gpu: ScenarioGpu) -> None:
    """Else nothing above would mean anything."""
    if why_denied(gpu):
        pytest.skip("counters are denied here")
    values = [gpu.instructions(n) for n in NAMES]
    assert len(set(values)) == len(values)
    one, many = gpu.instructions(NAMES[0]), gpu.instructions(NAMES[0], (64, 1, 1))
    assert one != many
    if not gpu.simulated:  # its values are invented; a real grid does its work once for each block
        assert abs(many / one - 64) < 1


@counting
def test_iterate_gives_the_means_without_a_replay(gpu: ScenarioGpu) -> None:
    gpu.prepare(*NAMES)
    with cuptiprof.profile(device=gpu.device, metrics=ROTATED, strategy="iterate") as prof:
        before = gpu.executed()
        for _ in range(24):
            for name in NAMES:
                gpu.launch(name)
        assert gpu.executed() - before == 24 * len(NAMES)
    result = prof.result()
    groups = len(result.metadata["counters"]["groups"])
    assert groups > 1 and set(result.metric_ranges["passes"]) == {groups}
    assert sorted(result.metric_ranges["name"]) == NAMES
    assert list(result.metric_ranges["occurrences"]) == [24] * len(NAMES)
    truth = [gpu.instructions(str(n)) for n in result.metric_ranges["name"]]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)
    assert (result.counters.column("inst_executed", "spread") < 1e-9).all() and not result.losses
    assert len(result.kernels) == 24 * len(NAMES)


@counting
def test_iterate_over_steps_reads_one_group_a_step(gpu: ScenarioGpu) -> None:
    gpu.prepare(*NAMES)
    with cuptiprof.profile(device=gpu.device, metrics=ROTATED, strategy="iterate") as prof:
        for _ in range(12):
            for name in NAMES:
                gpu.launch(name)
            prof.step()
    result = prof.result()
    groups = len(result.metadata["counters"]["groups"])
    assert groups > 1
    truth = [gpu.instructions(str(n)) for n in result.metric_ranges["name"]]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)
    assert set(result.counters.column("inst_executed", "count")) <= {12 // groups, -(-12 // groups)}


@counting
def test_steps_that_differ_leave_values_out_and_say_so(gpu: ScenarioGpu) -> None:
    gpu.prepare("always", "first_steps")
    with cuptiprof.profile(device=gpu.device, metrics=[*CHEAP, "gld_efficiency"], strategy="iterate") as prof:
        for step in range(8):
            gpu.launch("always")
            if step == 0:
                gpu.launch("first_steps")
            prof.step()
    result = prof.result()
    assert len(result.metadata["counters"]["groups"]) > 1
    # "first_steps" came in the step of one group only.
    missing = {str(n): i for i, n in enumerate(result.metric_ranges["name"])}
    values = [result.counters[m] for m in (*CHEAP, "gld_efficiency")]
    assert all(np.isfinite(v[missing["always"]]) for v in values)
    assert any(np.isnan(v[missing["first_steps"]]) for v in values)
    assert any("1 of 2 kernels were not met in every pass group" in n for n in result.metadata["counters"]["notes"])


@counting
def test_only_selected_kernels_are_touched(gpu: ScenarioGpu) -> None:
    gpu.prepare(*NAMES)

    def body() -> None:
        for _ in range(5):
            gpu.launch("kernel_1")
            with cuptiprof.region("fwd"), cuptiprof.region("attn"):
                for name in NAMES[:4]:
                    gpu.launch(name)

    result = collected(
        gpu,
        body,
        metrics=SEVERAL,
        strategy="replay",
        kernels="regex:kernel_(1|2)$",
        regions="fwd/*",
        launch_count=3,
    )
    assert list(result.metric_ranges["name"]) == ["kernel_1", "kernel_2", "kernel_1"]
    assert set(result.metric_ranges["region"]) == {"fwd/attn"}
    assert result.metadata["counters"]["passes"] > 1
    assert list(result.kernels["correlation_id"]) == list(result.metric_ranges["correlation_id"])
    assert counted(result) == {}


@counting
def test_a_pattern_is_asked_once_per_name(gpu: ScenarioGpu) -> None:
    gpu.prepare(*NAMES)

    def body() -> None:
        for _ in range(50):
            for name in NAMES:
                gpu.launch(name)

    result = collected(gpu, body, metrics=CHEAP, kernels="regex:kernel_3")
    assert result.metadata["counters"]["names_judged"] == len(NAMES)
    assert list(result.metric_ranges["name"]) == ["kernel_3"] * 50


@counting
def test_captured_launches_are_not_measured(gpu: ScenarioGpu) -> None:
    gpu.prepare("k0", "k1", "k2")

    def body() -> None:
        gpu.launch("k0")
        graph = gpu.graph(lambda stream: gpu.launch("k1", count=2, stream=stream))
        gpu.run_graph(graph)
        gpu.synchronize()
        gpu.launch("k2")

    result = collected(gpu, body, metrics=CHEAP)
    assert measured(result) == ["k0", "k2"]
    assert counted(result) == {"captured": 2} and result.losses["uncounted"] == 2
    assert len(result.kernels) == 4


@counting
@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_launches_that_the_driver_refuses_are_neither_measured_nor_lost(gpu: ScenarioGpu, metrics: list[str]) -> None:
    def body() -> None:
        gpu.launch("good")
        for _ in range(3):
            gpu.launch_refused("bad")
        gpu.launch("good")

    gpu.prepare("good", "bad")
    result = collected(gpu, body, metrics=metrics, strategy="replay")
    assert measured(result) == ["good", "good"]
    assert counted(result) == {"not_run": 3} and result.losses["uncounted"] == 0
    np.testing.assert_allclose(result.counters["inst_executed"], [gpu.instructions("good")] * 2)


@counting
def test_samples_belong_to_the_kernels_that_ran_meanwhile(gpu: ScenarioGpu) -> None:
    gpu.prepare("first", "second")

    def body() -> None:
        for _ in range(3):
            for name in ("first", "second"):
                gpu.launch(name, (132, 1, 1), duration_ns=5_000_000)
        gpu.synchronize()

    names = ["achieved_occupancy", "ipc", "dram_read_bytes"]
    result = collected(gpu, body, metrics=names, strategy="sample", sampling_interval="100us")
    ranges = result.metric_ranges
    assert (ranges["kind"] == 4).sum() > 200
    kernels = np.flatnonzero(ranges["kind"] == 2)
    assert sorted(ranges["name"][kernels]) == ["first", "second"]
    # 3 x 50 samples lie in each, less those across its ends.
    assert (result.counters.column("ipc", "count")[kernels] >= 3 * 45).all()
    assert np.isfinite(result.kernels["ipc"]).all()
    assert (
        (result.counters["achieved_occupancy"][kernels] > 0) & (result.counters["achieved_occupancy"][kernels] <= 1)
    ).all()


@counting
def test_a_kernel_shorter_than_two_samples_has_no_value(gpu: ScenarioGpu) -> None:
    gpu.prepare("short")

    def body() -> None:
        gpu.launch("short", count=50, duration_ns=100_000)
        gpu.synchronize()

    result = collected(gpu, body, metrics=["ipc"], strategy="sample", sampling_interval="1ms")
    assert set(result.metric_ranges["kind"].tolist()) == {4} and np.isnan(result.kernels["ipc"]).all()


@counting
def test_counters_of_a_schedule_come_cycle_by_cycle(gpu: ScenarioGpu) -> None:
    results: list[cuptiprof.Result] = []
    gpu.prepare(*NAMES)
    plan = cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2)
    with cuptiprof.profile(
        device=gpu.device,
        metrics=ONE_PASS,
        schedule=plan,
        strategy="replay",
        on_ready=lambda p: results.append(p.result()),
    ) as prof:
        for _ in range(8):
            for name in NAMES[:5]:
                gpu.launch(name)
            prof.step()
    assert [len(r.metric_ranges) for r in results] == [10, 10]
    truth = [gpu.instructions(n) for n in NAMES[:5]] * 2
    np.testing.assert_allclose(results[1].counters["inst_executed"], truth)
