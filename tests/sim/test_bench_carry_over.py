"""Functions that leave caches behind, each other's and their own: a comparison sees the functions, not their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Count
from cuptiprof.bench.sampling.strategy import cycle_of, orders
from cuptiprof.device.devices import SimulatedDevice

Functions = dict[str, Callable[[], None]]


@pytest.fixture
def machine() -> Iterator[SimulatedDevice]:
    device = SimulatedDevice(virtual_clock=True)
    yield device
    device.sim.clear_faults()


def identical(machine: SimulatedDevice, count: int, seed: int, memory: int = 1) -> Functions:
    """So many functions of 10 us, of 12 us after another one. `memory`: of runs before that matter, 2 us shared among them."""
    rng, before, sim = np.random.default_rng(seed), [""] * memory, machine.sim

    def make(name: str) -> Callable[[], None]:
        def work() -> None:
            others = sum(b != name for b in before) / memory
            before.append(name)
            del before[0]
            sim.launch("k", duration_ns=int((10_000 + 2_000 * others) * np.exp(rng.normal(0, 0.01))))

        return work

    return {chr(ord("A") + i): make(chr(ord("A") + i)) for i in range(count)}


@pytest.mark.parametrize("strategy", ["kernel", "event"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_candidate_takes_what_it_takes_alone(machine: SimulatedDevice, count: int, strategy: str) -> None:
    functions = identical(machine, count, seed=count)
    found = cuptiprof.compare(functions, device=machine, stop=Count(100), strategy=strategy)
    alone = cuptiprof.bench(functions["A"], device=machine, stop=Count(100), strategy=strategy).median
    for m in found.measurements:
        assert m.median == pytest.approx(alone, rel=0.01), m.name
    assert not any(v.differs for v in found.verdicts.values()), str(found)


@pytest.mark.parametrize(("runs", "counts"), [(2, (2, 3, 8)), pytest.param(29, range(2, 9), marks=pytest.mark.nightly)])
def test_identical_candidates_are_never_told_apart(
    machine: SimulatedDevice, runs: int, counts: tuple[int, ...]
) -> None:
    """At night: 203 comparisons of 2 to 8 candidates."""
    for seed in range(runs):
        for count in counts:
            functions = identical(machine, count, seed=1000 * count + seed)
            found = cuptiprof.compare(functions, device=machine)
            assert not any(v.differs for v in found.verdicts.values()), str(found)
            assert all(m.median == pytest.approx(10_000, rel=0.01) for m in found.measurements)


def test_a_memory_of_more_than_one_run_favours_none(machine: SimulatedDevice) -> None:
    """What one run before the sample cannot settle is shared evenly: no candidate is always after the same one."""
    found = cuptiprof.compare(identical(machine, 4, 7, memory=3), device=machine, stop=Count(800))
    assert not any(v.differs for v in found.verdicts.values()), str(found)


def test_set_up_runs_before_the_unmeasured_run_too(machine: SimulatedDevice) -> None:
    log: list[str] = []

    def make(name: str) -> Callable[[], None]:
        return lambda: (log.append(name), machine.sim.launch(name, duration_ns=10_000))[0]

    cuptiprof.compare({"a": make("a"), "b": make("b")}, setup=lambda: log.append("-"), device=machine, stop=Count(100))
    assert "".join(log[-16:]) in ("-a-a-b-b-b-b-a-a", "-b-b-a-a-a-a-b-b")


def test_a_cold_cache_needs_no_run_before(machine: SimulatedDevice) -> None:
    ran: list[str] = []

    def make(name: str) -> Callable[[], None]:
        return lambda: (ran.append(name), machine.sim.launch(name, duration_ns=10_000))[0]

    cuptiprof.compare({"a": make("a"), "b": make("b")}, device=machine, stop=Count(100), l2="cold")
    assert "".join(ran[-8:]) == "abbabaab"


@pytest.mark.parametrize("calls", range(1, 10))
def test_every_call_has_every_place_and_every_predecessor_equally_often(calls: int) -> None:
    rounds = list(orders(calls, cycle_of(calls)))
    assert all(sorted(r) == list(range(calls)) for r in rounds)
    assert all(there == back[::-1] for there, back in zip(rounds[::2], rounds[1::2], strict=True))
    for place in range(calls):
        assert set(Counter(r[place] for r in rounds).values()) == {len(rounds) // calls}
    after = Counter(pair for r in rounds for pair in pairwise(r))
    assert len(after) == calls * (calls - 1) and len(set(after.values())) <= 1
