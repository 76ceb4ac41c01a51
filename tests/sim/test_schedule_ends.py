"""Where a program ends within its schedule, and which result is then the session's."""

from __future__ import annotations

from typing import Any

import pytest

import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

CYCLES = [(0, 0, 3), (1, 0, 3), (0, 1, 2), (1, 1, 3)]


def run(
    sim: SimDevice, cycle: tuple[int, int, int], steps: int, *, after: int = 0, **keywords: Any
) -> tuple[Any, list[Any]]:
    """Each step launches a kernel named after it; `after` more come behind the last one. The result, and those that on_ready saw."""
    wait, warmup, active = cycle
    seen: list[Any] = []
    with cuptiprof.profile(
        device="sim",
        schedule=cuptiprof.schedule(wait=wait, warmup=warmup, active=active),
        on_ready=lambda p: seen.append(p.result()),
        **keywords,
    ) as prof:
        for step in range(steps):
            sim.launch(f"step{step}")
            prof.step()
        if after:
            sim.launch("after", count=after)
    return prof.result(), seen


@pytest.mark.parametrize("keep", ["latest", "spill"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("cycle", CYCLES)
def test_exactly_on_a_cycle(cycle: tuple[int, int, int], times: int, keep: str, sim: SimDevice) -> None:
    result, seen = run(sim, cycle, times * sum(cycle), keep=keep)
    first = times * sum(cycle) - cycle[2]
    names = [f"step{i}" for i in range(first, first + cycle[2])]
    assert list(result.kernels["name"]) == names
    steps = result.markers.where(result.markers["category"] == "step")
    assert list(steps["name"]) == [f"ProfilerStep#{i}" for i in range(first, first + cycle[2])]
    assert len(seen) == times and seen[-1] is result  # told of each cycle once, and of no empty one


@pytest.mark.parametrize("keep", ["latest", "spill"])
def test_work_after_the_last_cycle_is_a_cycle_of_its_own(keep: str, sim: SimDevice) -> None:
    result, seen = run(sim, (0, 0, 2), 4, after=3, keep=keep)
    assert list(result.kernels["name"]) == ["after"] * 3 and len(seen) == 3
    result, seen = run(sim, (1, 0, 2), 6, after=3, keep=keep)  # that is in a step that waits
    assert list(result.kernels["name"]) == ["step4", "step5"] and len(seen) == 2


def test_a_step_without_work_is_a_step(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", schedule=cuptiprof.schedule(wait=0, warmup=0, active=2)) as prof:
        for step in range(3):
            if step < 2:
                sim.launch(f"step{step}")
            prof.step()
    result = prof.result()
    assert len(result.kernels) == 0 and "ProfilerStep#2" in list(result.markers["name"])
