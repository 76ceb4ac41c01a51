"""Sampling that goes on through what libcupti does to a sampler."""

from __future__ import annotations

import time

import pytest

import cuptiprof
from cuptiprof.sim.device import Fault, SimDevice


@pytest.mark.parametrize("version", [120600, 130001])
def test_sampling_with_the_structs_of_each_release(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    original = cuptiprof.session.open_device

    def opened(*args: object, **keywords: object) -> object:
        device = original(*args, **keywords)  # type: ignore[arg-type]
        sim.reset(cupti_version=version)
        return device

    monkeypatch.setattr(cuptiprof.session, "open_device", opened)
    with cuptiprof.profile(device="sim", metrics=["ipc"], strategy="sample", sampling_interval="100us") as prof:
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
