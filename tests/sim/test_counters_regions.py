"""Counters of regions under bad input: left open, raising, differing, interleaved."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest
from counter_cases import CONTEXT_DESTROY, ONE_PASS, SEVERAL, counted, inst, machine, quiet_warnings

import cuptiprof
from cuptiprof.errors import SessionError
from cuptiprof.sim.device import SimDevice

__all__ = ["machine"]


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
        for i in range(4100):
            with cuptiprof.region(f"r{i}"):
                machine.launch("k")

    with repeated() as prof:
        machine.launch("warm")
        prof.repeat(work)
    result = prof.result()
    assert len(result.metric_ranges) == 4096 and counted(result)["no_room"] == 4


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


def test_repeated_runs_in_several_configurations_are_kept_apart(machine: SimDevice) -> None:
    """PCIe and SM counters do not go together: each run is measured once in each."""

    def work(n: int) -> None:
        for name in ("a", "b"):
            with cuptiprof.region(name):
                machine.launch(name, grid=(n, 1, 1))

    names = ["inst_executed", "pcie__read_bytes.sum"]
    with cuptiprof.profile(device="sim", metrics=names, strategy="range", repeatable=True) as prof:
        machine.launch("warm")
        for n in (1, 2, 3):
            prof.repeat(work, n)
    result = prof.result()
    assert len(result.metadata["counters"]["groups"]) == 2 and set(result.metric_ranges["passes"]) == {2}
    truth = [inst(machine, name, grid=(n, 1, 1)) for n in (1, 2, 3) for name in ("a", "b")]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)
    assert np.isfinite(result.counters["pcie__read_bytes.sum"]).all()
