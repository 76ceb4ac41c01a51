"""Steps stay within their share of the budget."""

from __future__ import annotations

import tracemalloc

import pytest

import cuptiprof
from cuptiprof.session.steps import Step, Steps
from cuptiprof.sim.sim_device import SimDevice


@pytest.mark.parametrize("keep_first", [True, False])
def test_full(keep_first: bool) -> None:
    steps = Steps(64 << 16, keep_first=keep_first)  # 64 KiB: 2,048 steps
    for i in range(10_000):
        steps.append(Step(i, 10 * i, 10 * i + 5, 7))
    got = list(steps)
    assert len(got) + steps.lost == 10_000 and 1500 < len(got) <= 2048
    first = 0 if keep_first else steps.lost
    assert got == [Step(i, 10 * i, 10 * i + 5, 7) for i in range(first, first + len(got))]
    more = steps.plus([Step(10_000, 0, 1, 7)])
    assert list(steps) == got and len(more) + more.lost == 10_001


def test_memory() -> None:
    tracemalloc.start()
    steps = Steps(64 << 20, keep_first=False)  # 1 MiB
    for i in range(200_000):
        steps.append(Step(i, i, i, 7))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(steps) > 28_000 and used < 2 << 20


def test_of_a_session() -> None:
    """Dropped ones are counted with the rows that are."""
    device = SimDevice()
    with cuptiprof.profile(device="sim", budget="5 MB") as prof:
        for _ in range(5000):
            prof.step()
        device.launch("k")
    r = prof.result()
    steps = r.markers.where(r.markers["category"] == "step")
    assert len(steps) + r.losses["budget_evicted"] == 5001
    assert str(steps["name"][-1]) == "ProfilerStep#5000" and len(r.kernels) == 1
