"""The harness under what disturbs real measurements: slow clocks, lost records, other programs. Each has a clear outcome."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Count, Kernel, RelativeHalfWidth, measure
from cuptiprof.bench.sampling import warmup
from cuptiprof.data.clock_state import POWER_CAP, ClockState
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import BenchError, CuptiError, SessionError
from cuptiprof.sim.sim_device import Fault

NORMAL = ClockState(1980.0, 2619.0, 45.0, 300.0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedDevice]:
    """The harness's own limits go by the simulated clock too: blocks, and the readings of the clocks between them, are the same on any
    machine."""
    device = SimulatedDevice(virtual_clock=True)
    for module in (measure, warmup):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: device.sim.now() / 1e9))
    yield device
    device.sim.clear_faults()


def test_samples_under_a_slowdown_are_discarded(machine: SimulatedDevice) -> None:
    """From 20 ms to 60 ms the clocks are held down and kernels take twice as long."""
    sim = machine.sim
    begin = sim.now()
    machine.clocks.at(begin + 20_000_000, ClockState(990.0, 2619.0, 88.0, 200.0, 0x40))
    machine.clocks.at(begin + 60_000_000, NORMAL)

    def work() -> None:
        slow = begin + 20_000_000 <= sim.now() < begin + 60_000_000
        sim.launch("k", duration_ns=400_000 if slow else 200_000)
        sim.synchronize()

    m = cuptiprof.bench(work, device=machine, stop=Count(1000))
    assert (m.samples == 200_000).all() and len(m.samples) >= 1000
    assert m.discarded and any(d.value == 400_000 for d in m.discarded)
    assert any("hardware thermal slowdown" in d.reason for d in m.discarded)
    assert len(m.samples) + len(m.discarded) == len(m.places()) + len({d.index for d in m.discarded})
    assert "discarded" in str(m) and "thermal" in str(m)


def test_samples_at_another_clock_are_discarded(machine: SimulatedDevice) -> None:
    sim = machine.sim
    begin = sim.now()
    machine.clocks.at(begin + 30_000_000, ClockState(1700.0, 2619.0))
    machine.clocks.at(begin + 75_000_000, NORMAL)

    def work() -> None:
        changed = begin + 30_000_000 <= sim.now() < begin + 75_000_000
        sim.launch("k", duration_ns=232_000 if changed else 200_000)
        sim.synchronize()

    m = cuptiprof.bench(work, device=machine, stop=Count(1000))
    assert m.median == 200_000 and m.samples.max() == 200_000
    assert any("SM clock at" in d.reason and "usually 1980" in d.reason for d in m.discarded)
    assert any("between 1700 and 1980 MHz" in n for n in m.notes)


def test_a_clock_that_wanders_all_the_time_discards_nothing_and_is_said(machine: SimulatedDevice) -> None:
    sim = machine.sim
    for i in range(100):
        machine.clocks.at(sim.now() + i * 10_000_000, ClockState((1500.0, 1980.0, 1740.0)[i % 3]))
    m = cuptiprof.bench(lambda: sim.launch("k", duration_ns=500_000), device=machine, stop=Count(800))
    assert not m.discarded and any("between 1500 and 1980" in n for n in m.notes)


def test_a_gpu_that_is_always_held_down_gives_no_number(machine: SimulatedDevice) -> None:
    machine.clocks.at(0, ClockState(500.0, reasons=0x08))
    with pytest.raises(BenchError, match="hardware slowdown") as caught:
        cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=10_000), device=machine)
    assert "none of the" in str(caught.value) and "nvidia-smi" in caught.value.hint


def test_a_power_cap_is_said_and_discards_nothing(machine: SimulatedDevice) -> None:
    machine.clocks.at(0, ClockState(1500.0, reasons=POWER_CAP))
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=10_000), device=machine)
    assert not m.discarded and any("power cap in 100 %" in n for n in m.notes)


def test_clocks_that_cannot_be_read_are_said(machine: SimulatedDevice) -> None:
    machine.clocks.at(0, None)
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=10_000), device=machine)
    assert m.median == 10_000 and any("clocks were not read" in n for n in m.notes)
    assert m.environment["clocks"] == {"sm_mhz": 1980.0}  # the GPU's own count, which needs no NVML


def test_other_programs_on_the_gpu_are_named(machine: SimulatedDevice) -> None:
    machine.clocks.set_others([4321])
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=10_000), device=machine)
    assert any("4321" in n for n in m.notes)


def test_a_lost_record_spoils_its_block(machine: SimulatedDevice) -> None:
    """Records are dropped in one block only: its samples are not used, those of the others are."""
    sim, calls = machine.sim, count()

    def work() -> None:
        n = next(calls)
        if n == 14:  # the first block of samples
            sim.inject(Fault.DROP_RECORDS, a=4)
        if n == 22:
            sim.clear_faults()
        for _ in range(2):
            sim.launch("k", duration_ns=10_000)

    m = cuptiprof.bench(work, device=machine)
    assert (m.samples == 20_000).all()  # a sample with one of its two records would be 10,000
    assert m.discarded and all("lost" in d.reason for d in m.discarded)
    assert len(m.samples) >= 100


def test_records_that_are_always_lost_give_no_number(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()

    def work() -> None:
        if next(calls) == 14:
            sim.inject(Fault.DROP_RECORDS, a=2)
        sim.launch("k", duration_ns=10_000)

    with pytest.raises(BenchError, match="lost") as caught:
        cuptiprof.bench(work, device=machine)
    assert "event" in caught.value.hint
    # Where every record is lost even the look at the function fails.
    sim.inject(Fault.DROP_RECORDS, a=1)
    with pytest.raises(BenchError, match="traced completely"):
        cuptiprof.bench(work, device=machine)


def test_records_without_times_spoil_their_block(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()

    def work() -> None:
        if next(calls) == 14:
            sim.inject(Fault.ZERO_TIMESTAMPS, a=3)
        sim.launch("k", duration_ns=10_000)

    with pytest.raises(BenchError, match="invalid_timestamps"):
        cuptiprof.bench(work, device=machine)


def test_another_profiler_is_an_error_for_records_and_a_note_for_the_rest(machine: SimulatedDevice) -> None:
    sim = machine.sim
    sim.inject(Fault.OTHER_SUBSCRIBER, name="another tool")

    def work() -> None:
        sim.launch("k", duration_ns=10_000)

    with pytest.raises(CuptiError, match="subscrib"):
        cuptiprof.bench(work, device=machine)
    m = cuptiprof.bench(work, device=machine, strategy="wall")
    assert m.median > 10_000 and any("could not be looked at" in n for n in m.notes)


def test_inside_a_session_records_are_refused(machine: SimulatedDevice) -> None:
    with cuptiprof.profile(device=machine), pytest.raises(SessionError):
        cuptiprof.bench(lambda: machine.sim.launch("k"), device=machine)


@pytest.mark.parametrize("fault", ["busy", "refused"])
def test_counters_that_cannot_be_had_leave_the_times(machine: SimulatedDevice, fault: str) -> None:
    if fault == "busy":
        machine.sim.inject(Fault.COUNTERS_BUSY, a=1)
    else:
        machine.sim.inject(Fault.FAIL_CALL, name="cuptiRangeProfilerEnable", a=35)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=10_000), device=machine, metrics="ipc")
    assert m.median == 10_000 and all(np.isnan(c.value) for c in m.counters)
    assert any("could not be read" in n or "no value of ipc" in n for n in m.notes), m.notes


def test_outliers_move_neither_the_median_nor_its_interval(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()
    rng = np.random.default_rng(5)

    def work() -> None:
        n = next(calls)
        sim.launch("k", duration_ns=int(10_000 * np.exp(rng.normal(0, 0.01))) * (40 if n % 25 == 24 else 1))

    m = cuptiprof.bench(work, device=machine)
    assert m.converged and m.median == pytest.approx(10_000, rel=0.005)
    assert m.interval.half_width <= 0.005 and m.samples.max() > 300_000  # kept, and harmless


def test_two_modes_are_measured_until_the_interval_is_narrow(machine: SimulatedDevice) -> None:
    sim = machine.sim
    rng = np.random.default_rng(6)

    def work() -> None:
        sim.launch("k", duration_ns=int(rng.normal(10_000 if rng.random() < 0.7 else 13_000, 60)))

    m = cuptiprof.bench(work, device=machine)
    assert m.median == pytest.approx(10_040, rel=0.01) and m.converged


def test_time_is_up_before_the_interval_is_narrow(machine: SimulatedDevice) -> None:
    rng = np.random.default_rng(7)
    m = cuptiprof.bench(
        lambda: machine.sim.launch("k", duration_ns=int(rng.uniform(1_000, 100_000))),
        device=machine,
        stop=RelativeHalfWidth(1e-6),
        max_seconds=0.2,
    )
    assert not m.converged and "limit" in m.stopped_by
    assert m.cost["measuring"] < 2


def test_the_interval_holds_the_true_median_end_to_end(machine: SimulatedDevice) -> None:
    """60 whole measurements of log-normal times: fewer than 52 hits have a chance of 1 in 2,000 at 95 %."""
    sim, hits = machine.sim, 0
    rng = np.random.default_rng(8)
    for _ in range(60):
        m = cuptiprof.bench(
            lambda: sim.launch("k", duration_ns=int(20_000 * np.exp(rng.normal(0, 0.02)))), device=machine
        )
        hits += m.interval.low <= 20_000 <= m.interval.high
    assert hits >= 52


def test_pytorch_is_given_back_when_a_session_was_open_around(machine: SimulatedDevice) -> None:
    import torch

    from cuptiprof.bench import Count

    x = torch.ones(8)
    with cuptiprof.profile(device=machine) as prof:
        m = cuptiprof.bench(lambda: x + 1, device=machine, strategy="wall", stop=Count(10))
        x + 1
    assert m.median > 0 and len(prof.result().kernels) == m.warmup_calls + len(m.samples) + 1
    launched = machine.sim.truth()["kernels"]
    x + 1
    assert machine.sim.truth()["kernels"] == launched


def test_a_clock_between_several_values_is_said(machine: SimulatedDevice) -> None:
    """Two of three readings are 3.5 % off the middle one: which clock is the usual one cannot be told, and nothing is discarded."""
    sim = machine.sim
    begin = sim.now()
    for i in range(200):
        machine.clocks.at(begin + i * 20_000_000, ClockState((1000.0, 1035.0, 1070.0)[i % 3], 2619.0))

    def work() -> None:
        sim.launch("k", duration_ns=500_000)
        sim.synchronize()

    m = cuptiprof.bench(work, device=machine, stop=Count(1000))
    assert not m.discarded and any("between 1000 and 1070 MHz" in n for n in m.notes)


def test_calls_of_many_kernels_are_taken_in_smaller_blocks(
    machine: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the records of a block fit into the budget of its session."""
    sizes: list[int] = []

    class Watched(Kernel):
        def rounds(self, gpu, calls, count, cold, tick):  # type: ignore[no-untyped-def]
            sizes.append(count)
            return super().rounds(gpu, calls, count, cold, tick)

    def run(kernels: int, functions: int) -> list[int]:
        sizes.clear()
        work = partial(machine.sim.launch, "k", duration_ns=1_000, count=kernels)
        cuptiprof.compare(
            {str(i): work for i in range(functions)}, device=machine, strategy=Watched(), stop=Count(12), max_seconds=60
        )
        return sizes

    monkeypatch.setattr("cuptiprof.bench.measure.MAX_BLOCK_RECORDS", 4_000)
    assert run(10, 2) == [8, 4]  # cycles of orders
    assert run(250, 2) == [4, 4, 4]  # with the unmeasured runs
    many = run(
        5_000, 2
    )  # the fewest calls there can be; where the decoder found no time for so many, a block is taken again
    assert set(many) == {2} and len(many) >= 6


def test_discards_cost_no_more_samples_than_were_discarded(machine: SimulatedDevice) -> None:
    """The rule waits for 400 samples in use: one lost block of the first costs about its own number again, not 400 more."""
    sim, calls = machine.sim, count()

    def work() -> None:
        n = next(calls)
        if n == 14:  # the first block of samples
            sim.inject(Fault.DROP_RECORDS, a=4)
        if n == 22:
            sim.clear_faults()
        for _ in range(2):
            sim.launch("k", duration_ns=10_000)

    m = cuptiprof.bench(work, device=machine)
    assert m.discarded and len(m.samples) == 400
    assert "after 400 samples" in m.stopped_by


def test_a_region_whose_row_is_lost_counts_as_none() -> None:
    """A kernel may name a region later than all that were kept."""
    from typing import Any

    from cuptiprof.bench.sampling.kernel import Work

    none: dict[str, Any] = {n: [] for n in ("region_instance", "start", "end", "copy_kind")}
    kernels = {"region_instance": [1, 9], "start": [0, 50], "end": [10, 60], "name": ["a", "b"]}
    regions = {"instance": [1], "name": ["cuptiprof.bench:0"], "parent": [0]}
    result: Any = SimpleNamespace(regions=regions, kernels=kernels, memcpys=none, memsets=none)
    result.timed = lambda: result
    work = Work(result)
    assert work.of(1)[0] == 10 and work.outside == 1
