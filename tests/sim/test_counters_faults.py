"""Counters under bad input and faults: a clear error or a counted loss, and the program goes on as without them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.counters.live import CounterWarning
from cuptiprof.errors import CuptiError, MetricError, SessionError
from cuptiprof.sim.device import Fault, Op, SimDevice

ONE_PASS = ["ipc", "inst_executed"]
ROTATED = [*ONE_PASS, "gld_efficiency", "l1tex__t_sector_hit_rate.pct"]  # two groups of one pass
SEVERAL = ["gld_efficiency", "inst_executed", "lts__t_sector_hit_rate.pct"]
STRATEGIES = ["replay", "iterate", "range", "sample"]
CONTEXT_DESTROY = 23


@pytest.fixture(autouse=True)
def machine() -> Iterator[SimDevice]:
    """A machine of its own, on the real clock."""
    device = SimDevice()
    device.clear_faults()
    with cuptiprof.profile(device="sim"):
        pass
    device.reset()
    yield device
    device.clear_faults()
    device.reset()


def counted(result: cuptiprof.Result) -> dict[str, int]:
    return dict(result.metadata["counters"]["events"])


def inst(device: SimDevice, name: str, **fields: Any) -> float:
    """True instructions of one launch of `name`."""
    shape = {"grid": (1, 1, 1), "block": (128, 1, 1)} | fields
    return float(device.true_metric("smsp__inst_executed.sum", device.ops(1, Op.KERNEL, name=name, **shape))[0])


class quiet_warnings(warnings.catch_warnings):
    """Warnings are looked at elsewhere."""

    def __enter__(self) -> Any:
        out = super().__enter__()
        warnings.simplefilter("ignore")
        return out


def after_opening(patch: pytest.MonkeyPatch, action: Any) -> None:
    """Opening the simulated device makes it fresh: `action` comes between that and the rest of start()."""
    original = cuptiprof.session.open_device

    def opened(*a: Any, **k: Any) -> Any:
        device = original(*a, **k)
        action()
        return device

    patch.setattr(cuptiprof.session, "open_device", opened)


@pytest.mark.parametrize("code", [33, 40, 41, 43])
def test_machines_without_counters_say_why(machine: SimDevice, code: int) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS).start()
    machine.inject(Fault.NO_COUNTERS, a=code)
    machine.launch("k", count=5)
    with pytest.warns(CounterWarning) as said:
        result = prof.stop()
    assert len(result.kernels) == 5 and len(result.metric_ranges) == 0
    assert counted(result) == {"failed": 5} and result.losses["uncounted"] == 5
    text = str(said[0].message)
    assert "cuptiRangeProfilerEnable returned CUPTI_ERROR" in text and len(text) > 100
    assert text in result.metadata["counters"]["notes"]


@pytest.mark.parametrize("strategy", ["replay", "iterate", "range"])
def test_counters_in_use_by_another_profiler(machine: SimDevice, strategy: str) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    machine.inject(Fault.COUNTERS_BUSY, a=1)
    with cuptiprof.region("r"):
        machine.launch("k", count=5)
    with pytest.warns(CounterWarning, match=r"CUPTI_ERROR_HARDWARE_BUSY.*(DCGM|profiler|ncu)"):
        result = prof.stop()
    assert len(result.kernels) == 5 and result.losses["uncounted"] == (1 if strategy == "range" else 5)


def test_sampling_hardware_in_use_fails_at_the_start(machine: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="sample")
    after_opening(monkeypatch, lambda: machine.inject(Fault.COUNTERS_BUSY, a=1))
    with pytest.raises(CuptiError) as caught:
        prof.start()
    assert caught.value.code == 26 and caught.value.hint
    machine.clear_faults()
    machine.reset()  # nothing holds it


def test_a_metric_the_chip_lacks_names_the_chips_that_have_it() -> None:
    with pytest.raises(MetricError) as caught:
        cuptiprof.profile(device="sim:A100", metrics=["sm__inst_executed_pipe_tensor_op_gmma.sum"]).start()
    assert "GH100" in str(caught.value)


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_dropped_ranges_are_counted_and_the_others_right(machine: SimDevice, metrics: list[str]) -> None:
    with cuptiprof.profile(device="sim", metrics=metrics, strategy="replay") as prof:
        machine.inject(Fault.DROP_RANGES, a=5)
        for i in range(50):
            machine.launch(f"k{i}", grid=(i + 1, 1, 1))
    result = prof.result()
    assert counted(result) == {"dropped": 10} and len(result.metric_ranges) == 40
    truth = [inst(machine, n, grid=(int(n[1:]) + 1, 1, 1)) for n in result.metric_ranges["name"]]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
@pytest.mark.parametrize(
    "function",
    [
        "cuptiRangeProfilerSetConfig",
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerPushRange",
        "cuptiRangeProfilerPopRange",
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData",
        "cuptiProfilerHostEvaluateToGpuValues",
    ],
)
def test_a_call_that_fails_once_costs_some_launches_no_more(
    machine: SimDevice, function: str, metrics: list[str]
) -> None:
    """What was not measured is counted, what was is right, and no profiler stays on beside launches not selected."""
    prof = cuptiprof.profile(device="sim", metrics=metrics, strategy="replay", kernels="chosen*").start()
    machine.launch("chosen", count=3)
    machine.inject(Fault.FAIL_CALL, function, a=999, b=1, c=1)
    for i in range(40):
        machine.launch(f"chosen{i}", grid=(i + 1, 1, 1))
        before = machine.truth()["ranges_collected"]
        machine.launch("other")
        assert machine.truth()["ranges_collected"] == before
    with quiet_warnings():
        result = prof.stop()
    assert len(result.kernels) == 43
    lost = sum(counted(result).values())
    assert lost + len(result.metric_ranges) == 43 and lost <= 43
    names = [str(n) for n in result.metric_ranges["name"]]
    truth = [inst(machine, n, grid=(int(n[6:] or 0) + 1, 1, 1)) for n in names]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)


def test_a_region_left_open_at_stop_is_counted(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range").start()
    machine.launch("warm")
    with cuptiprof.region("closed"):
        machine.launch("k")
    with cuptiprof.region("open"):
        machine.launch("k")
        result = prof.stop()
    assert list(result.metric_ranges["name"]) == ["closed"] and counted(result) == {"unfinished": 1}
    # A session that follows is not confused by it, on the same thread.
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range") as again, cuptiprof.region("next"):
        machine.launch("k")
    assert list(again.result().metric_ranges["name"]) == ["next"]


def test_an_open_region_of_an_earlier_session_does_not_end_one_of_this(machine: SimDevice) -> None:
    first = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range").start()
    machine.launch("warm")
    stale = cuptiprof.region("stale")
    stale.__enter__()
    first.stop()
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range", regions="wanted") as prof:
        with cuptiprof.region("ignored"), cuptiprof.region("wanted"):
            pass
        with cuptiprof.region("ignored"):
            pass
        with cuptiprof.region("wanted"):
            machine.launch("a")
            stale.__exit__(None, None, None)
            machine.launch("b")
    result = prof.result()
    assert result.counters["inst_executed"][-1] == pytest.approx(inst(machine, "a") + inst(machine, "b"))


def test_an_exception_inside_a_region_ends_it(machine: SimDevice) -> None:
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range") as prof:
        machine.launch("warm")
        with pytest.raises(KeyError), cuptiprof.region("r"):
            machine.launch("k")
            raise KeyError
        with cuptiprof.region("r"):
            machine.launch("k")
    result = prof.result()
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")] * 2)


def repeated(**keywords: Any) -> Any:
    return cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="range", repeatable=True, **keywords)


def test_repeated_work_that_raises_is_forgotten_and_can_be_repeated_again(machine: SimDevice) -> None:
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1
        for name in ("a", "b"):
            with cuptiprof.region(name):
                machine.launch(name)
                if calls == 2 and name == "a":
                    raise KeyError("second pass")

    with repeated() as prof:
        machine.launch("warm")
        with pytest.raises(KeyError):
            prof.repeat(work)
        prof.repeat(work)
        prof.repeat(work)
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["a", "b"] * 2
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "a"), inst(machine, "b")] * 2)
    assert np.isfinite(result.counters["gld_efficiency"]).all()
    assert counted(result) == {"unfinished": 2}


def test_repeated_work_that_differs_has_values_only_for_what_was_the_same(machine: SimDevice) -> None:
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1
        for name in ("a", "b" if calls == 1 else "x", "c"):
            with cuptiprof.region(name):
                machine.launch(name)

    with repeated() as prof:
        machine.launch("warm")
        prof.repeat(work)
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["a"]
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "a")])
    events = counted(result)
    assert events["unfinished"] == 2 and events["differing"] >= 2
    assert any("other regions than the first" in n for n in result.metadata["counters"]["notes"])


def test_work_declared_repeatable_but_never_repeated_has_no_values(machine: SimDevice) -> None:
    with quiet_warnings(), repeated() as prof:
        machine.launch("warm")
        with cuptiprof.region("a"):
            machine.launch("a")
    assert len(prof.result().metric_ranges) == 0 and counted(prof.result()) == {"unfinished": 1}


def test_a_region_open_across_the_repeated_work_is_an_error(machine: SimDevice) -> None:
    with quiet_warnings(), repeated() as prof:
        machine.launch("warm")
        with cuptiprof.region("around"), pytest.raises(SessionError, match="still open"):
            prof.repeat(lambda: machine.launch("k"))


def test_more_regions_than_there_is_room_for_in_one_pass(machine: SimDevice) -> None:
    def work() -> None:
        for i in range(300):
            with cuptiprof.region(f"r{i}"):
                machine.launch("k")

    with repeated() as prof:
        machine.launch("warm")
        prof.repeat(work)
    result = prof.result()
    assert len(result.metric_ranges) == 256 and counted(result)["no_room"] == 44


def test_interleaved_tasks_are_not_taken_for_nested_regions(machine: SimDevice) -> None:
    async def task(name: str, first: float, second: float) -> None:
        await asyncio.sleep(first)
        with cuptiprof.region(name):
            machine.launch(name)
            await asyncio.sleep(second)

    async def both() -> None:
        await asyncio.gather(task("early", 0, 0.02), task("late", 0.01, 0.03))

    with cuptiprof.profile(device="sim", metrics=["inst_executed"], strategy="range") as prof:
        machine.launch("warm")
        asyncio.run(both())
    assert list(prof.result().metric_ranges["name"]) == ["early"]  # everything on the context meanwhile
    assert counted(prof.result()) == {"nested": 1}
    with (
        quiet_warnings(),
        cuptiprof.profile(
            device="sim", metrics=["inst_executed"], strategy="range", repeatable=True, region_levels=2
        ) as prof,
    ):
        machine.launch("warm")
        prof.repeat(lambda: asyncio.run(both()))
    assert len(prof.result().metric_ranges) == 0 and counted(prof.result())["crossing"] >= 2


def test_a_communicating_kernel_that_hangs_lets_the_program_go_on(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="replay", communicating=True).start()
    machine.launch("before")
    failed: list[Exception] = []

    def hang() -> None:
        try:
            machine.launch("ncclDevKernel_AllReduce")
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    time.sleep(0.1)
    begin = time.monotonic()
    machine.launch("beside", stream=9, context=77, count=20)  # another context: not held by the hanging one
    assert time.monotonic() - begin < 1.5
    thread.join()
    machine.launch("after")
    result = prof.stop()
    assert failed  # the simulated GPU itself reports a launch that timed out
    names = list(result.metric_ranges["name"])
    assert names[0] == "before" and names[-1] == "after" and "ncclDevKernel_AllReduce" not in names
    assert counted(result)["not_run"] == 1
    assert len(names) + sum(counted(result).values()) == 23


def test_stop_while_a_launch_hangs_and_a_session_after_it(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="replay", communicating=True).start()
    machine.launch("before")
    thread = threading.Thread(target=lambda: _try(lambda: machine.launch("nccl_hangs")))
    thread.start()
    time.sleep(0.05)
    result = prof.stop()
    assert list(result.metric_ranges["name"]) == ["before"]
    thread.join()
    for strategy in ("replay", "range"):
        with quiet_warnings(), cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as again:
            machine.launch("after", context=5)
            with cuptiprof.region("r"):
                machine.launch("after", context=5)
        assert len(again.result().metric_ranges) >= 1


def _try(function: Any) -> None:
    with contextlib.suppress(cuptiprof.errors.CuptiprofError):
        function()


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_launches_that_fail_are_neither_measured_nor_lost(machine: SimDevice, metrics: list[str]) -> None:
    with cuptiprof.profile(device="sim", metrics=metrics, strategy="replay") as prof:
        machine.launch("good")
        machine.launch("bad", count=3, return_value=700)
        machine.launch("good")
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["good", "good"]
    assert counted(result) == {"not_run": 3} and result.losses["uncounted"] == 0
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "good")] * 2)


@pytest.mark.parametrize("strategy", ["replay", "iterate", "range"])
def test_contexts_come_and_go(machine: SimDevice, strategy: str) -> None:
    """More of them than there is room for at a time; one is destroyed while collection is paused."""
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as prof:
        for i in range(100):
            machine.launch("warm", context=1000 + i)
            with cuptiprof.region("r"):
                machine.launch("k", context=1000 + i)
            if i % 10 == 5:
                prof.pause()
            machine.call(CONTEXT_DESTROY, context=1000 + i)  # type: ignore[arg-type]
            if i % 10 == 5:
                prof.resume()
    result = prof.result()
    assert not counted(result)
    if strategy == "range":
        np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")] * 100)
    elif strategy == "replay":
        assert len(result.metric_ranges) == 200
    else:
        assert sorted(result.metric_ranges["occurrences"]) == [100, 100]


def test_a_context_destroyed_inside_a_measured_region(machine: SimDevice) -> None:
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range") as prof:
        machine.launch("warm", context=3)
        begin = time.monotonic()
        with cuptiprof.region("r"):
            machine.launch("k", context=3)
            machine.call(CONTEXT_DESTROY, context=3)  # type: ignore[arg-type]
        assert time.monotonic() - begin < 1
        machine.launch("warm", context=4)
        with cuptiprof.region("r"):
            machine.launch("k", context=4)
    result = prof.result()
    assert counted(result) == {"unfinished": 1}
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")])


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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fork_in_the_middle(machine: SimDevice, strategy: str) -> None:
    """The child touches neither the parent's profiler nor its threads, and ends by itself."""
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    machine.launch("warm")
    with cuptiprof.region("r"):
        machine.launch("k")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            child = os.fork()
        if child == 0:
            before = machine.truth()["ranges_collected"]
            with cuptiprof.region("child"):
                machine.launch("in the child")
            code = 0 if machine.truth()["ranges_collected"] == before else 3
            try:
                prof.stop()
                code = 4
            except SessionError:
                pass
            finally:
                prof._session = None  # destroys the native session
                os._exit(code)
    deadline = time.monotonic() + 10
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(done[1]) == 0
    result = prof.stop()
    if strategy == "range":
        np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")])
    elif strategy != "sample":
        assert sorted(str(n) for n in result.metric_ranges["name"]) == ["k", "warm"]


def test_control_c_in_the_middle(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=SEVERAL, strategy="replay")
    with pytest.raises(KeyboardInterrupt), prof:
        machine.launch("k")
        signal.raise_signal(signal.SIGINT)
        machine.launch("never")
    assert list(prof.result().metric_ranges["name"]) == ["k"] and prof.state == "stopped"
    machine.reset()


def test_sessions_one_after_another_with_other_metrics(machine: SimDevice) -> None:
    for metrics in (ONE_PASS, ROTATED, ["dram_read_bytes"], ONE_PASS):
        for strategy in ("replay", "iterate"):
            with cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy) as prof:
                machine.launch("k", count=6)
            assert {m["name"] for m in prof.result().metadata["counters"]["metrics"]} == set(metrics)
            assert np.isfinite(prof.result().counters[metrics[0]]).all()


def test_samples_lost_in_a_small_hardware_buffer_are_counted(machine: SimDevice) -> None:
    """A ring that the reader does not keep up with, and a buffer that stops when it is full."""
    original = cuptiprof._core.CounterOptions
    for keep_latest in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                cuptiprof._core,
                "CounterOptions",
                lambda _keep=keep_latest, **k: original(**(k | {"hardware_buffer": 16 * 6144, "keep_latest": _keep})),
            )
            with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="sample", sampling_interval="10us") as prof:
                time.sleep(0.2)
        result = prof.result()
        truth = machine.truth()
        assert truth["samples_lost"] > 0
        if keep_latest:
            samples = result.metric_ranges
            gaps = (samples["start"][1:] - samples["end"][:-1]) // 10_000
            assert 0 < gaps.sum() == counted(result)["overwritten"] <= truth["samples_lost"]
        else:
            assert result.losses["sample_overflows"] > 0
        machine.reset()


def test_every_device_that_is_used_is_sampled(machine: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    after_opening(monkeypatch, lambda: machine.reset(devices=3))
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="sample") as prof:
        machine.launch("first", device=0, duration_ns=5_000_000)
        machine.launch("warm", device=2, duration_ns=1000)
        time.sleep(0.05)
        machine.launch("third", device=2, duration_ns=5_000_000)
        machine.synchronize(device=2)
        machine.synchronize(device=0)
        time.sleep(0.01)
    ranges = prof.result().metric_ranges
    assert set(ranges["device"][ranges["kind"] == 4]) == {0, 2}
    where = {str(n): int(d) for n, d, k in zip(ranges["name"], ranges["device"], ranges["kind"], strict=True) if k == 2}
    assert where["third"] == 2


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
    assert after[1:] == before[1:]
    assert after[0] - before[0] < 8 << 20
    assert np.median(last) < 3 * np.median(first)


def test_control_calls_meet_launches_of_other_threads(machine: SimDevice) -> None:
    """Pausing, taking and stopping while threads launch: what was selected is measured rightly or counted."""
    for strategy, metrics in (("replay", SEVERAL), ("replay", ONE_PASS), ("iterate", ROTATED)):
        prof = cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy, kernels="chosen*").start()
        done = threading.Event()

        def launch(n: int, done: threading.Event = done) -> None:
            device = SimDevice()
            while not done.is_set():
                device.launch(f"chosen{n}", grid=(n + 1, 1, 1), stream=n + 1)
                device.launch("other", grid=(77, 1, 1), stream=n + 1)

        threads = [threading.Thread(target=launch, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for _ in range(10):
            time.sleep(0.01)
            prof.pause()
            prof.resume()
        with quiet_warnings():
            result = prof.stop()
        done.set()
        for t in threads:
            t.join()
        assert len(result.metric_ranges) > 0
        names = [str(n) for n in result.metric_ranges["name"]]
        truth = [inst(machine, n, grid=(int(n[6:]) + 1, 1, 1)) for n in names]
        np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9, err_msg=strategy)
        machine.reset()
