"""Counters through pauses, windows, schedules and many sessions; the program does the same with them."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from counter_cases import ONE_PASS, ROTATED, STRATEGIES, counted, inst, machine

import cuptiprof
from cuptiprof.sim.device import Op, SimDevice

__all__ = ["machine"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pause_and_resume(machine: SimDevice, strategy: str) -> None:
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as prof:
        machine.launch("warm")
        for i in range(4):
            work(machine, f"on{i}")
            prof.pause()
            work(machine, f"off{i}")
            prof.resume()
    check_only_on(prof.result(), machine, strategy, [f"on{i}" for i in range(4)])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_profile_from_start_false(machine: SimDevice, strategy: str) -> None:
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy, profile_from_start=False) as prof:
        work(machine, "off")
        time.sleep(0.02)
        for i in range(2):
            machine.call(Op.PROFILER_START)
            time.sleep(0.02 if strategy == "sample" else 0)
            work(machine, f"on{i}")
            machine.call(Op.PROFILER_STOP)
            time.sleep(0.02 if strategy == "sample" else 0)
            work(machine, "off")
    check_only_on(prof.result(), machine, strategy, ["on0", "on1"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_schedule(machine: SimDevice, strategy: str) -> None:
    results = []
    with cuptiprof.profile(
        device="sim",
        metrics=ONE_PASS,
        strategy=strategy,
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_ready=lambda p: results.append(p.result()),
    ) as prof:
        for i in range(8):
            work(machine, f"step{i}")
            prof.step()
    assert len(results) == 2
    check_only_on(results[0], machine, strategy, ["step2", "step3"])
    check_only_on(results[1], machine, strategy, ["step6", "step7"])


def work(machine: SimDevice, name: str) -> None:
    """A kernel of 2 ms in a region of its name."""
    with cuptiprof.region(name):
        machine.launch(name, duration_ns=2_000_000)
        machine.synchronize()


def check_only_on(result: cuptiprof.Result, machine: SimDevice, strategy: str, names: list[str]) -> None:
    """Exactly these were measured, with their own values."""
    ranges = result.metric_ranges
    if strategy == "sample":
        kernels = [str(n) for n, k in zip(ranges["name"], ranges["kind"], strict=True) if k == 2 and n != "warm"]
        assert sorted(kernels) == names
        samples = ranges.where(ranges["kind"] == 4)
        total = int((samples["end"] - samples["start"]).sum())
        assert total < len(names) * 60_000_000  # not while it was off
    else:
        measured = [i for i, n in enumerate(ranges["name"]) if n != "warm"]
        assert [str(ranges["name"][i]) for i in measured] == names
        truth = [inst(machine, n, duration_ns=2_000_000) for n in names]
        np.testing.assert_allclose(result.counters["inst_executed"][measured], truth, rtol=1e-9)
    assert not counted(result)


def test_pass_groups_take_turns_over_the_active_steps_of_a_schedule(machine: SimDevice) -> None:
    """Whatever lies between: wait and warm-up steps would otherwise use up the same group each time."""
    with cuptiprof.profile(
        device="sim",
        metrics=ROTATED,
        strategy="iterate",
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=1, repeat=4),
        on_ready=lambda p: groups.append(set(p.result().metrics.where(p.result().metrics["count"] > 0)["group"])),
    ) as prof:
        groups: list[set[int]] = []
        for _ in range(12):
            machine.launch("k")
            prof.step()
    assert [sorted(g) for g in groups] == [[1], [2], [1], [2]]


def test_spill_keeps_counters(machine: SimDevice) -> None:
    with cuptiprof.profile(
        device="sim", metrics=ONE_PASS, strategy="replay", keep="spill", budget="8 MB", kernels="rare"
    ) as prof:
        for _ in range(20):
            machine.launch("common", count=500)
            machine.launch("rare")
    result = prof.result()
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "rare")] * 20)


def test_the_program_does_the_same_with_counters(machine: SimDevice) -> None:
    def program() -> dict[str, int]:
        machine.reset()
        for i in range(30):
            with cuptiprof.region(f"r{i % 3}"):
                machine.launch(f"k{i % 7}", stream=1 + i % 3)
                machine.call(Op.MEMCPY, bytes=4096)
        machine.synchronize()
        return machine.truth()

    plain = program()
    for strategy in STRATEGIES:
        for metrics in (ONE_PASS, ROTATED) if strategy in ("replay", "iterate") else (ONE_PASS,):
            machine.reset()
            before = machine.truth()
            with cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy) as prof:
                for i in range(30):
                    with cuptiprof.region(f"r{i % 3}"):
                        machine.launch(f"k{i % 7}", stream=1 + i % 3)
                        machine.call(Op.MEMCPY, bytes=4096)
                machine.synchronize()
            truth = machine.truth()
            for what in ("kernels", "memcpys"):
                assert truth[what] - before[what] == plain[what]
            passes = prof.result().metadata["counters"]["passes"]
            assert truth["kernels_replayed"] == (30 * (passes - 1) if strategy == "replay" else 0)
            assert [str(n) for n in prof.result().kernels["name"]] == [f"k{i % 7}" for i in range(30)]


def test_sessions_one_after_another_with_other_metrics(machine: SimDevice) -> None:
    for metrics in (ONE_PASS, ROTATED, ["dram_read_bytes"], ONE_PASS):
        for strategy in ("replay", "iterate"):
            with cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy) as prof:
                machine.launch("k", count=6)
            assert {m["name"] for m in prof.result().metadata["counters"]["metrics"]} == set(metrics)
            assert np.isfinite(prof.result().counters[metrics[0]]).all()


def test_a_hundred_sessions_cost_what_the_first_did(machine: SimDevice) -> None:
    def measure() -> tuple[int, int, int]:
        with open("/proc/self/statm") as f:
            rss = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        return rss, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def session(i: int) -> float:
        begin = time.perf_counter()
        with (
            cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=STRATEGIES[i % 4], budget="16 MB") as prof,
            cuptiprof.region("r"),
        ):
            machine.launch("k", count=300, duration_ns=100_000 if i % 4 == 3 else 1000)
            machine.synchronize()
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
def test_room_for_values_is_part_of_the_budget(machine: SimDevice, keep: str) -> None:
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="replay", keep=keep, budget="4 MiB") as prof:
        machine.launch("early", count=20_000)
        machine.launch("late", count=100)
    result = prof.result()
    names = [str(n) for n in result.metric_ranges["name"]]
    lost = counted(result)["no_room"]
    assert len(names) + lost == 20_100 and 1000 < len(names) < 20_000
    assert names.count("late") == (100 if keep == "latest" else 0)
    np.testing.assert_allclose(
        result.counters["inst_executed"],
        np.where(np.array(names) == "late", inst(machine, "late"), inst(machine, "early")),
    )
