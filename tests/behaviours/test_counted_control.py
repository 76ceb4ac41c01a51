"""Counters through pauses, windows, schedules and many sessions; the program does the same with them."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from gpu import ScenarioGpu
from scenarios import ONE_PASS, ROTATED, STRATEGIES, counted, launched

import cuptiprof
from cuptiprof import _core
from cuptiprof.device.gpu import HOST_TO_DEVICE

pytest_plugins = ["behaviour_fixtures"]
pytestmark = pytest.mark.usefixtures("counting")


def work(gpu: ScenarioGpu, strategy: str, name: str) -> None:
    """A kernel in a region of its name. Samples need 2 ms of it; waiting would change how many instructions it has."""
    with cuptiprof.region(name):
        gpu.launch(name, duration_ns=2_000_000 if strategy == "sample" else 0)
        gpu.synchronize()


INTERVAL = 100_000  # of samples, ns, where a session says no other
Spans = list[tuple[int, int]]


def check_only_on(result: cuptiprof.Result, gpu: ScenarioGpu, strategy: str, names: list[str], on: Spans) -> None:
    """Exactly these were measured, with their own values; samples lie within the times `on`."""
    ranges = result.metric_ranges
    if strategy == "sample":
        kernels = [str(n) for n, k in zip(ranges["name"], ranges["kind"], strict=True) if k == 2 and n != "warm"]
        assert sorted(kernels) == names
        samples = ranges.where(ranges["kind"] == 4)
        within = np.zeros(len(samples), bool)
        for begin, end in on:  # a sample that was begun may reach over the edge
            within |= (samples["start"] >= begin - INTERVAL) & (samples["end"] <= end + INTERVAL)
        assert len(samples) and within.all()  # none while it was off
    else:
        rows = [i for i, n in enumerate(ranges["name"]) if n != "warm"]
        assert [str(ranges["name"][i]) for i in rows] == names
        truth = [gpu.instructions(n) for n in names]
        np.testing.assert_allclose(result.counters["inst_executed"][rows], truth, rtol=1e-9)
    assert not counted(result)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pause_and_resume(gpu: ScenarioGpu, strategy: str) -> None:
    on: Spans = []
    begin = 0
    with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy=strategy) as prof:
        gpu.launch("warm")
        for i in range(4):
            work(gpu, strategy, f"on{i}")
            prof.pause()
            on.append((begin, _core.now_ns()))
            work(gpu, strategy, f"off{i}")
            begin = _core.now_ns()
            prof.resume()
    on.append((begin, _core.now_ns()))
    check_only_on(prof.result(), gpu, strategy, [f"on{i}" for i in range(4)], on)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_profile_from_start_false(gpu: ScenarioGpu, strategy: str) -> None:
    with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy=strategy, profile_from_start=False) as prof:
        work(gpu, strategy, "off")
        time.sleep(0.02)
        on: Spans = []
        for i in range(2):
            begin = _core.now_ns()
            gpu.profiler_start()
            time.sleep(0.02 if strategy == "sample" else 0)
            work(gpu, strategy, f"on{i}")
            gpu.profiler_stop()
            on.append((begin, _core.now_ns()))
            time.sleep(0.02 if strategy == "sample" else 0)
            work(gpu, strategy, "off")
    check_only_on(prof.result(), gpu, strategy, ["on0", "on1"], on)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_schedule(gpu: ScenarioGpu, strategy: str) -> None:
    results = []
    steps = []  # when each ended
    with cuptiprof.profile(
        device=gpu.device,
        metrics=ONE_PASS,
        strategy=strategy,
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_ready=lambda p: results.append(p.result()),
    ) as prof:
        for i in range(8):
            work(gpu, strategy, f"step{i}")
            steps.append(_core.now_ns())
            prof.step()
    assert len(results) == 2
    check_only_on(results[0], gpu, strategy, ["step2", "step3"], [(steps[1], steps[4])])
    check_only_on(results[1], gpu, strategy, ["step6", "step7"], [(steps[5], _core.now_ns())])


def test_pass_groups_take_turns_over_the_active_steps_of_a_schedule(gpu: ScenarioGpu) -> None:
    """Whatever lies between: wait and warm-up steps would otherwise use up the same group each time."""
    with cuptiprof.profile(
        device=gpu.device,
        metrics=ROTATED,
        strategy="iterate",
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=1, repeat=4),
        on_ready=lambda p: groups.append(set(p.result().metrics.where(p.result().metrics["count"] > 0)["group"])),
    ) as prof:
        groups: list[set[int]] = []
        for _ in range(12):
            gpu.launch("k")
            prof.step()
    taken = [number for (number,) in groups]  # one group each
    assert len(set(taken)) > 1 and taken[: len(set(taken))] == sorted(set(taken))
    assert all(taken[i] == taken[i % len(set(taken))] for i in range(4))


def test_spill_keeps_counters(gpu: ScenarioGpu) -> None:
    with cuptiprof.profile(
        device=gpu.device, metrics=ONE_PASS, strategy="replay", keep="spill", budget="8 MB", kernels="rare"
    ) as prof:
        for _ in range(20):
            gpu.launch("common", count=500)
            gpu.launch("rare")
    result = prof.result()
    np.testing.assert_allclose(result.counters["inst_executed"], [gpu.instructions("rare")] * 20)


@pytest.mark.parametrize(("strategy", "metrics"), [(s, m) for s in STRATEGIES for m in (ONE_PASS, ROTATED)])
def test_the_program_does_the_same_with_counters(gpu: ScenarioGpu, strategy: str, metrics: list[str]) -> None:
    """The same kernels in the same order, each with its effect once, however often it ran to be counted."""
    if metrics is ROTATED and strategy in ("range", "sample"):
        metrics = ["inst_executed"]  # neither takes several passes
    streams = [gpu.stream() for _ in range(3)]
    gpu.prepare(*(f"k{i}" for i in range(7)))
    with cuptiprof.profile(device=gpu.device, metrics=metrics, strategy=strategy) as prof:
        before = gpu.executed()
        for i in range(30):
            with cuptiprof.region(f"r{i % 3}"):
                gpu.launch(f"k{i % 7}", stream=streams[i % 3])
                gpu.copy(HOST_TO_DEVICE, 4096)
        gpu.synchronize()
        assert gpu.executed() - before == 30
    result = prof.result()
    assert launched(result) == [f"k{i % 7}" for i in range(30)]
    copies = result.memcpys.where(result.memcpys["bytes"] == 4096)
    assert len(copies) == 30


def test_sessions_one_after_another_with_other_metrics(gpu: ScenarioGpu) -> None:
    for metrics in (ONE_PASS, ROTATED, ["dram_read_bytes"], ONE_PASS):
        for strategy in ("replay", "iterate"):
            with cuptiprof.profile(device=gpu.device, metrics=metrics, strategy=strategy) as prof:
                gpu.launch("k", count=6)
            assert {m["name"] for m in prof.result().metadata["counters"]["metrics"]} == set(metrics)
            assert np.isfinite(prof.result().counters[metrics[0]]).all()


def test_a_hundred_sessions_cost_what_the_first_did(gpu: ScenarioGpu) -> None:
    def measure() -> tuple[int, int, int]:
        with open("/proc/self/statm") as f:
            rss = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        return rss, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def session(i: int) -> float:
        begin = time.perf_counter()
        with (
            cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy=STRATEGIES[i % 4], budget="16 MB") as prof,
            cuptiprof.region("r"),
        ):
            gpu.launch("k", count=300, duration_ns=100_000 if i % 4 == 3 else 1000)
            gpu.synchronize()
        assert len(prof.result().metric_ranges) >= 1
        return time.perf_counter() - begin

    first = [session(i) for i in range(20)]
    before = measure()
    last = [session(i) for i in range(100)]
    after = measure()
    assert after[1] <= before[1] and after[2] <= before[2]  # fewer: of another test, ending meanwhile
    assert after[0] - before[0] < 8 << 20
    assert np.median(last) < 3 * np.median(first)


@pytest.mark.parametrize("keep", ["latest", "first"])
def test_room_for_values_is_part_of_the_budget(gpu: ScenarioGpu, keep: str) -> None:
    with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy="replay", keep=keep, budget="4 MiB") as prof:
        gpu.launch("early", count=20_000)
        gpu.launch("late", count=100)
    result = prof.result()
    names = [str(n) for n in result.metric_ranges["name"]]
    lost = counted(result)["no_room"]
    assert len(names) + lost == 20_100 and 1000 < len(names) < 20_000
    assert names.count("late") == (100 if keep == "latest" else 0)
    np.testing.assert_allclose(
        result.counters["inst_executed"],
        np.where(np.array(names) == "late", gpu.instructions("late"), gpu.instructions("early")),
    )
