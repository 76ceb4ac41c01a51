"""Sampling that goes on through what libcupti does to a sampler."""

from __future__ import annotations

import dataclasses
import time

import pytest
from own_time import takes_less_than

import cuptiprof
from cuptiprof.counters.live import CounterWarning
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.sim.sim_device import Fault, SimDevice, library_path


def of_release(version: int) -> SimulatedDevice:
    """A device whose libcupti is of another release."""
    device = SimulatedDevice()
    device.setup = dataclasses.replace(device.setup, cupti_version=version)
    device.sim.open(device.setup).close()
    device.library = cuptiprof._core.load_cupti(str(library_path()), "simulated device", True)
    assert device.library.version == (24 if version == 120600 else version)  # as NVIDIA's of 12.6 says
    return device


@pytest.mark.parametrize("version", [120600, 130001])
def test_sampling_with_the_structs_of_each_release(sim: SimDevice, version: int) -> None:
    with cuptiprof.profile(
        device=of_release(version), metrics=["ipc"], strategy="sample", sampling_interval="100us"
    ) as prof:
        sim.launch("k", duration_ns=20_000_000)
        sim.synchronize()
    assert (prof.result().metric_ranges["kind"] == 4).sum() > 50


def test_a_sampler_that_gives_nothing_any_more_is_restarted(sim: SimDevice) -> None:
    """In both modes of the hardware buffer; what is lost is said."""
    sim.reset()
    with cuptiprof.profile(device="sim", metrics=["ipc"], strategy="sample", sampling_interval="1ms") as prof:
        sim.inject(Fault.SAMPLER_STUCK, a=4)
        time.sleep(1)
        sim.clear_faults()
    result = prof.result()
    samples = result.metric_ranges.where(result.metric_ranges["kind"] == 4)
    assert result.losses["sample_overflows"] >= 2
    assert samples["end"].max() - samples["start"].min() > 500_000_000 and len(samples) > 200


def with_options(monkeypatch: pytest.MonkeyPatch, **options: object) -> None:
    """Sessions opened from here on have other counter options."""
    original = cuptiprof._core.CounterOptions
    monkeypatch.setattr(cuptiprof._core, "CounterOptions", lambda **k: original(**(k | options)))


def test_slots_without_times_are_left_out_and_the_gap_is_counted(sim: SimDevice) -> None:
    """Every look fills the image (at 1 us, with 25 ms between looks): the next one begins with a slot of zeros."""
    sim.reset()
    with cuptiprof.profile(device="sim", metrics=["ipc"], strategy="sample", sampling_interval="1us") as prof:
        time.sleep(0.3)
    result = prof.result()
    samples = result.metric_ranges.where(result.metric_ranges["kind"] == 4)
    lost = sim.truth()["samples_lost"]
    assert lost > 0 and (samples["start"] > 0).all() and (samples["end"] > samples["start"]).all()
    gaps = (samples["start"][1:] - samples["end"][:-1]) // 1000
    events = result.metadata["counters"]["events"]
    # The first sample after a start has no row; a gap right behind it counts and cannot be seen.
    assert 0 < gaps.sum() <= events["overwritten"] == result.losses["uncounted"] <= lost


def test_records_of_no_length_after_a_stop_are_no_samples(sim: SimDevice) -> None:
    sim.reset()
    with cuptiprof.profile(device="sim", metrics=["ipc"], strategy="sample", sampling_interval="1ms") as prof:
        for _ in range(3):
            time.sleep(0.02)
            prof.pause()
            prof.resume()
    result = prof.result()
    samples = result.metric_ranges.where(result.metric_ranges["kind"] == 4)
    assert len(samples) > 20 and (samples["end"] > samples["start"]).all()
    assert not result.losses


def test_reading_after_a_stop_ends_and_says_so(sim: SimDevice) -> None:
    sim.reset()
    prof = cuptiprof.profile(device="sim", metrics=["ipc"], strategy="sample", sampling_interval="1ms")
    prof.start()
    time.sleep(0.1)
    sim.inject(Fault.SAMPLER_ENDLESS, a=1)
    begin = time.monotonic()
    with takes_less_than(10):
        prof.stop()
    sim.clear_faults()
    assert time.monotonic() - begin > 1.5
    result = prof.result()
    assert result.metadata["counters"]["events"] == {"unread": 1} and result.losses["uncounted"] == 1


def test_launches_without_a_record_are_said(sim: SimDevice) -> None:
    sim.reset()
    sim.inject(Fault.SAMPLED_UNRECORDED, a=1)
    with (
        pytest.warns(CounterWarning, match="none of the 5 kernels"),
        cuptiprof.profile(device="sim", metrics=["ipc"], strategy="sample", sampling_interval="1ms") as prof,
    ):
        for _ in range(5):
            sim.launch("k", duration_ns=3_000_000)
        sim.synchronize()
    sim.clear_faults()
    result = prof.result()
    assert len(result.kernels) == 0 and result.losses["unreconciled_launches"] == 5
    assert (result.metric_ranges["kind"] == 4).sum() > 5
    assert any("12.8" in note for note in result.metadata["counters"]["notes"])


@pytest.mark.filterwarnings("ignore:no sample came")
@pytest.mark.parametrize("version", [120600, 130001])
def test_a_buffer_of_12_6_is_not_taken_for_a_ring(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """It has no append mode: it stops when it is full, and is started again. Later ones overwrite the oldest samples."""
    with_options(monkeypatch, hardware_buffer=300 * 6144, keep_latest=True)
    with cuptiprof.profile(
        device=of_release(version), metrics=["ipc"], strategy="sample", sampling_interval="50us"
    ) as prof:
        time.sleep(0.5)
    result = prof.result()
    events = result.metadata["counters"]["events"]
    assert set(events) == ({"overflows"} if version == 120600 else {"overwritten"})
