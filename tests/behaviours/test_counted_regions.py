"""Counters of regions: nested, left open, raising, differing, interleaved."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from gpu import ScenarioGpu
from scenarios import ONE_PASS, SEVERAL, counted, quiet_warnings

import cuptiprof
from cuptiprof.errors import MetricError, SessionError

pytest_plugins = ["behaviour_fixtures"]
pytestmark = pytest.mark.usefixtures("counting")


def test_regions_as_ranges_in_one_pass(gpu: ScenarioGpu) -> None:
    gpu.prepare("a", "b")
    with cuptiprof.profile(
        device=gpu.device, metrics=["dram_read_bytes", "inst_executed"], strategy="range", regions="fwd"
    ) as prof:
        gpu.launch("warm")
        for _ in range(3):
            with cuptiprof.region("fwd"):
                gpu.launch("a", count=2)
                gpu.launch("b")
            with cuptiprof.region("bwd"):
                gpu.launch("b")
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["fwd"] * 3 and set(result.metric_ranges["kind"]) == {3}
    truth = 2 * gpu.instructions("a") + gpu.instructions("b")
    np.testing.assert_allclose(result.counters["inst_executed"], [truth] * 3, rtol=1e-9)
    assert np.isfinite(result.counters["dram_read_bytes"]).all()
    assert not result.losses


def test_regions_in_several_passes_need_repeated_work(gpu: ScenarioGpu) -> None:
    with pytest.raises(MetricError, match=r"need \d passes") as caught:
        cuptiprof.profile(device=gpu.device, metrics=SEVERAL, strategy="range").start()
    assert "drop" in caught.value.hint and "repeatable=True" in caught.value.hint
    calls = 0

    def work() -> int:
        nonlocal calls
        calls += 1
        for i in range(3):
            with cuptiprof.region(f"r{i}"):
                gpu.launch(f"k{i}")
                gpu.launch("every")
        return calls

    with repeated(gpu) as prof:
        assert prof.repeat(work) == calls
    result = prof.result()
    assert calls == result.metadata["counters"]["passes"] > 1
    assert list(result.metric_ranges["name"]) == ["r0", "r1", "r2"]
    truth = [gpu.instructions(f"k{i}") + gpu.instructions("every") for i in range(3)]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)
    with pytest.raises(SessionError):
        prof.repeat(work)


def test_nested_regions_are_measured_level_by_level(gpu: ScenarioGpu) -> None:
    def work() -> None:
        with cuptiprof.region("outer"):
            gpu.launch("a")
            with cuptiprof.region("inner"):
                gpu.launch("b", count=2)

    with cuptiprof.profile(
        device=gpu.device, metrics=["inst_executed"], strategy="range", repeatable=True, region_levels=2
    ) as prof:
        prof.repeat(work)
    result = prof.result()
    values = dict(zip(result.metric_ranges["name"], result.counters["inst_executed"], strict=True))
    inner = 2 * gpu.instructions("b")
    np.testing.assert_allclose(values["outer"], gpu.instructions("a") + inner)
    np.testing.assert_allclose(values["outer/inner"], inner)


def test_a_region_left_open_at_stop_is_counted(gpu: ScenarioGpu) -> None:
    prof = cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy="range").start()
    gpu.launch("warm")
    with cuptiprof.region("closed"):
        gpu.launch("k")
    with cuptiprof.region("open"):
        gpu.launch("k")
        result = prof.stop()
    assert list(result.metric_ranges["name"]) == ["closed"] and counted(result) == {"unfinished": 1}
    # A session that follows is not confused by it, on the same thread.
    with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy="range") as again, cuptiprof.region("next"):
        gpu.launch("k")
    assert list(again.result().metric_ranges["name"]) == ["next"]


def test_an_open_region_of_an_earlier_session_does_not_end_one_of_this(gpu: ScenarioGpu) -> None:
    first = cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy="range").start()
    gpu.launch("warm")
    stale = cuptiprof.region("stale")
    stale.__enter__()
    with quiet_warnings():
        first.stop()
    with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy="range", regions="wanted") as prof:
        with cuptiprof.region("ignored"), cuptiprof.region("wanted"):
            pass
        with cuptiprof.region("ignored"):
            pass
        with cuptiprof.region("wanted"):
            gpu.launch("a")
            stale.__exit__(None, None, None)
            gpu.launch("b")
    result = prof.result()
    assert result.counters["inst_executed"][-1] == pytest.approx(gpu.instructions("a") + gpu.instructions("b"))


def test_an_exception_inside_a_region_ends_it(gpu: ScenarioGpu) -> None:
    with cuptiprof.profile(device=gpu.device, metrics=ONE_PASS, strategy="range") as prof:
        gpu.launch("warm")
        with pytest.raises(KeyError), cuptiprof.region("r"):
            gpu.launch("k")
            raise KeyError
        with cuptiprof.region("r"):
            gpu.launch("k")
    result = prof.result()
    np.testing.assert_allclose(result.counters["inst_executed"], [gpu.instructions("k")] * 2)


def repeated(gpu: ScenarioGpu, **keywords: Any) -> Any:
    return cuptiprof.profile(device=gpu.device, metrics=SEVERAL, strategy="range", repeatable=True, **keywords)


def test_repeated_work_that_raises_is_forgotten_and_can_be_repeated_again(gpu: ScenarioGpu) -> None:
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1
        for name in ("a", "b"):
            with cuptiprof.region(name):
                gpu.launch(name)
                if calls == 2 and name == "a":
                    raise KeyError("second pass")

    with repeated(gpu) as prof:
        gpu.launch("warm")
        with pytest.raises(KeyError):
            prof.repeat(work)
        prof.repeat(work)
        prof.repeat(work)
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["a", "b"] * 2
    np.testing.assert_allclose(result.counters["inst_executed"], [gpu.instructions("a"), gpu.instructions("b")] * 2)
    assert np.isfinite(result.counters["gld_efficiency"]).all()
    assert counted(result) == {"unfinished": 2}


def test_repeated_work_that_differs_has_values_only_for_what_was_the_same(gpu: ScenarioGpu) -> None:
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1
        for name in ("a", "b" if calls == 1 else "x", "c"):
            with cuptiprof.region(name):
                gpu.launch(name)

    with repeated(gpu) as prof:
        gpu.launch("warm")
        prof.repeat(work)
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["a"]
    np.testing.assert_allclose(result.counters["inst_executed"], [gpu.instructions("a")])
    events = counted(result)
    assert events["unfinished"] == 2 and events["differing"] >= 2
    assert any("other regions than the first" in n for n in result.metadata["counters"]["notes"])


def test_work_declared_repeatable_but_never_repeated_has_no_values(gpu: ScenarioGpu) -> None:
    with quiet_warnings(), repeated(gpu) as prof:
        gpu.launch("warm")
        with cuptiprof.region("a"):
            gpu.launch("a")
    assert len(prof.result().metric_ranges) == 0 and counted(prof.result()) == {"unfinished": 1}


def test_a_region_open_across_the_repeated_work_is_an_error(gpu: ScenarioGpu) -> None:
    with quiet_warnings(), repeated(gpu) as prof:
        gpu.launch("warm")
        with cuptiprof.region("around"), pytest.raises(SessionError, match="still open"):
            prof.repeat(lambda: gpu.launch("k"))


def test_more_regions_than_there_is_room_for_in_one_pass(gpu: ScenarioGpu) -> None:
    def work() -> None:
        for i in range(1028):
            with cuptiprof.region(f"r{i}"):
                gpu.launch("k")

    with repeated(gpu) as prof:
        gpu.launch("warm")
        prof.repeat(work)
    result = prof.result()
    assert len(result.metric_ranges) == 1024 and counted(result)["no_room"] == 4


def test_interleaved_tasks_are_not_taken_for_nested_regions(gpu: ScenarioGpu) -> None:
    async def task(name: str, first: float, second: float) -> None:
        await asyncio.sleep(first)
        with cuptiprof.region(name):
            gpu.launch(name)
            await asyncio.sleep(second)

    async def both() -> None:
        await asyncio.gather(task("early", 0, 0.02), task("late", 0.01, 0.03))

    with cuptiprof.profile(device=gpu.device, metrics=["inst_executed"], strategy="range") as prof:
        gpu.launch("warm")
        asyncio.run(both())
    assert list(prof.result().metric_ranges["name"]) == ["early"]  # everything on the context meanwhile
    assert counted(prof.result()) == {"nested": 1}
    with (
        quiet_warnings(),
        cuptiprof.profile(
            device=gpu.device, metrics=["inst_executed"], strategy="range", repeatable=True, region_levels=2
        ) as prof,
    ):
        gpu.launch("warm")
        prof.repeat(lambda: asyncio.run(both()))
    assert len(prof.result().metric_ranges) == 0 and counted(prof.result())["crossing"] >= 2


def test_repeated_runs_in_several_configurations_are_kept_apart(gpu: ScenarioGpu) -> None:
    """PCIe and SM counters do not go together: each run is measured once in each."""

    def work(n: int) -> None:
        for name in ("a", "b"):
            with cuptiprof.region(name):
                gpu.launch(name, (n, 1, 1))

    names = ["inst_executed", "pcie__read_bytes.sum"]
    with cuptiprof.profile(device=gpu.device, metrics=names, strategy="range", repeatable=True) as prof:
        gpu.launch("warm")
        for n in (1, 2, 3):
            prof.repeat(work, n)
    result = prof.result()
    assert len(result.metadata["counters"]["groups"]) == 2 and set(result.metric_ranges["passes"]) == {2}
    truth = [gpu.instructions(name, (n, 1, 1)) for n in (1, 2, 3) for name in ("a", "b")]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)
    assert np.isfinite(result.counters["pcie__read_bytes.sum"]).all()
