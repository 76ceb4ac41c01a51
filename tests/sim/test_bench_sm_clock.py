"""The SM clock of each sample, read on the GPU: true, outside of what is timed, and a reason to wait when it is held down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Count, measure
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.sampling import throttling, warmup
from cuptiprof.bench.sampling.clock_stamps import rates_between
from cuptiprof.bench.sampling.throttling import MAX_PAUSES
from cuptiprof.data.clock_state import POWER_CAP, ClockState
from cuptiprof.device.clock_kernel import CLOCK_STAMP
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.device.sim_gpu import SimGpu
from cuptiprof.errors import BenchError, ResultError

MS = 1_000_000


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedDevice]:
    """The harness's own limits go by the simulated clock too."""
    device = SimulatedDevice(virtual_clock=True)
    for module in (measure, warmup, throttling):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: device.sim.now() / 1e9))
    yield device
    device.sim.clear_faults()


@pytest.mark.parametrize("strategy", ["kernel", "event", "graph"])
@pytest.mark.parametrize("l2", ["warm", "cold"])
def test_each_sample_has_its_clock_and_the_same_time_as_without(
    machine: SimulatedDevice, strategy: str, l2: str
) -> None:
    machine.clocks.at(0, ClockState(1500.0))
    machine.clocks.at(machine.sim.now() + 60 * MS, ClockState(1545.0))

    def work() -> None:
        machine.sim.launch("k", duration_ns=200_000)

    m = cuptiprof.bench(work, device=machine, strategy=strategy, l2=l2, stop=Count(400))
    assert m.sm_hz.shape == m.samples.shape and m.median == pytest.approx(200_000, rel=0.02)
    assert m.samples.min() >= 200_000 and np.ptp(m.samples) <= 4_000  # stamps (2 us each) are in no sample
    found = np.unique(np.round(m.sm_hz / 1e6))
    assert found[0] == 1500 and found[-1] == 1545
    # Only what is within a millisecond of the change is between the two.
    assert ((m.sm_hz > 1.501e9) & (m.sm_hz < 1.544e9)).sum() <= 20
    assert Measurement.from_dict(m.to_dict()).sm_hz.tolist() == m.sm_hz.tolist()
    assert m.cycles() == pytest.approx(m.samples * m.sm_hz / 1e9)


def test_short_calls_get_a_stamp_now_and_then_and_a_clock_each(machine: SimulatedDevice) -> None:
    def work() -> None:
        machine.sim.launch("k", duration_ns=3_000)

    before = machine.sim.truth()["kernels"]
    m = cuptiprof.bench(work, device=machine, stop=Count(2000))
    stamps = machine.sim.truth()["kernels"] - before - m.warmup_calls - len(m.samples) - len(m.discarded) - 1
    assert 3 <= stamps < 0.2 * len(m.samples)
    assert np.nanmin(m.sm_hz) == pytest.approx(1.98e9, rel=1e-3) == np.nanmax(m.sm_hz)
    assert CLOCK_STAMP not in {k.name for k in m.kernels}


@pytest.mark.parametrize("strategy", ["cpu", "wall"])
def test_host_times_have_no_clock_and_no_cycles(machine: SimulatedDevice, strategy: str) -> None:
    m = cuptiprof.bench(lambda: machine.sim.launch("k"), device=machine, strategy=strategy, stop=Count(20))
    assert not len(m.sm_hz)
    with pytest.raises(BenchError, match="not known") as caught:
        m.cycles()
    assert "kernel" in caught.value.hint


@pytest.mark.parametrize("strategy", ["kernel", "event"])
def test_throttled_samples_are_taken_again_after_a_pause(machine: SimulatedDevice, strategy: str) -> None:
    """The clock falls to half without a word from NVML, and recovers when the GPU has rested."""
    sim, begin = machine.sim, machine.sim.now()
    machine.clocks.at(begin + 60 * MS, ClockState(990.0))
    machine.clocks.at(begin + 180 * MS, ClockState(1980.0))

    def work() -> None:
        slow = begin + 60 * MS <= sim.now() < begin + 180 * MS
        sim.launch("k", duration_ns=400_000 if slow else 200_000)
        sim.synchronize()

    m = cuptiprof.bench(work, device=machine, strategy=strategy, stop=Count(1000))
    # But for NVML's readings, every 20 ms, the samples would be called different: 990 MHz is far from the usual 1980.
    assert len(m.samples) >= 1000 and m.sm_hz.min() > 0.75 * 1980e6
    assert m.median == pytest.approx(200_000, rel=0.03) and m.samples.max() < 300_000
    assert any("below 75 % of 1980 MHz" in d.reason or "SM clock at 990" in d.reason for d in m.discarded)
    assert any("pause" in n and "throttled" in n for n in m.notes), m.notes


def test_a_gpu_that_is_hot_at_the_start_is_waited_for(machine: SimulatedDevice) -> None:
    """More readings are of the clock that is wrong than of the right one."""
    begin = machine.sim.now()
    machine.clocks.at(0, ClockState(990.0))
    machine.clocks.at(begin + 900 * MS, ClockState(1980.0))

    def work() -> None:
        machine.sim.launch("k", duration_ns=200_000 if machine.sim.now() >= begin + 900 * MS else 400_000)
        machine.sim.synchronize()

    m = cuptiprof.bench(work, device=machine, stop=Count(400))
    assert m.median == 200_000 == m.samples.max() and m.sm_hz.min() > 1.9e9
    assert any("pauses" in n for n in m.notes), m.notes


def test_pauses_end_and_a_clock_that_stays_low_is_said(machine: SimulatedDevice) -> None:
    """Somebody has locked the clocks: nothing is wrong with the GPU, and no pause helps."""
    machine.clocks.at(0, ClockState(1200.0))
    before = machine.sim.now()
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=200_000), device=machine, stop=Count(400))
    assert len(m.samples) >= 400 and not m.discarded
    assert any(f"{MAX_PAUSES} pauses" in n for n in m.notes), m.notes
    assert any("stays at 1200 MHz, 61 %" in n for n in m.notes), m.notes
    assert machine.sim.now() - before > 2.5e9  # it did wait


def test_a_power_cap_is_waited_for_by_nobody(machine: SimulatedDevice) -> None:
    """A large matrix product runs at 60 % of the highest clock all day: that is its clock."""
    machine.clocks.at(0, ClockState(1200.0, reasons=POWER_CAP))
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=200_000), device=machine, stop=Count(400))
    assert len(m.samples) >= 400 and not m.discarded
    assert not any("pause" in n for n in m.notes) and any("stays at 1200 MHz, 61 %" in n for n in m.notes)


def test_pauses_are_no_part_of_the_time_for_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real clock: ten pauses are 2.85 s, the limit is one."""
    device = SimulatedDevice(virtual_clock=True)
    device.clocks.at(0, ClockState(1200.0))
    waited = [0.0]
    real = time.monotonic
    clock = SimpleNamespace(monotonic=lambda: real() + waited[0])
    monkeypatch.setattr(measure, "time", clock)
    monkeypatch.setattr(throttling, "time", clock)

    def pause(self: SimGpu, seconds: float) -> None:
        waited[0] += seconds

    monkeypatch.setattr(SimGpu, "pause", pause)
    m = cuptiprof.bench(
        lambda: device.sim.launch("k", duration_ns=200_000), device=device, stop=Count(300), max_seconds=2.0
    )
    assert waited[0] > 2.5 and len(m.samples) >= 300 and m.stopped_by.startswith("300 samples"), m.stopped_by


def test_a_clock_that_is_well_waits_for_nothing(machine: SimulatedDevice) -> None:
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=200_000), device=machine, stop=Count(400))
    assert not m.discarded and not any("pause" in n for n in m.notes)


def test_rates_over_stamps() -> None:
    """Stamps of 1 GHz, 5 us apart, on a clock of 1 us steps: each rate is that of a millisecond, not of its own 5 us."""
    ns = np.arange(1, 401) * 5_000
    stamps = np.stack([ns // 1000 * 1000 + 7_000_000, ns], axis=1).astype(np.uint64)
    rates = rates_between(stamps)
    assert rates.shape == (399,) and np.abs(rates / 1e9 - 1).max() < 0.004
    stamps[50:60] = 0  # not written
    assert np.isfinite(rates_between(stamps)).all()
    assert np.isnan(rates_between(stamps[:5])).all()  # 20 us: too short to know
    assert np.isnan(rates_between(np.zeros((4, 2), np.uint64))).all()
    assert rates_between(np.zeros((1, 2), np.uint64)).shape == (0,)


def test_a_stamp_in_one_of_several_streams_would_shift_them(machine: SimulatedDevice) -> None:
    def work() -> None:
        machine.sim.launch("a", duration_ns=50_000, stream=7)
        machine.sim.launch("b", duration_ns=50_000, stream=8)

    m = cuptiprof.bench(work, device=machine, stop=Count(400))
    assert np.ptp(m.span) < 20_000 and np.isfinite(m.sm_hz).all()


def test_clocks_in_a_file_are_checked(machine: SimulatedDevice) -> None:
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=50_000), device=machine, stop=Count(20)).to_dict()
    with pytest.raises(ResultError, match="lengths"):
        Measurement.from_dict({**m, "sm_hz": m["sm_hz"][1:]})
    with pytest.raises(ResultError):
        Measurement.from_dict({**m, "sm_hz": "fast"})
    assert np.isnan(Measurement.from_dict({**m, "sm_hz": [None] * len(m["samples"])}).sm_hz).all()
