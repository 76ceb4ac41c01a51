"""Kernel records point at their module's memory for their names: what was launched is decoded before a module goes."""

from __future__ import annotations

from collections import Counter

import pytest

import cuptiprof
from cuptiprof.sim.device import DRIVER, Fault, Op, SimDevice

ROUNDS, LAUNCHES = 12, 300


def unload(device: SimDevice) -> None:
    device.call(Op.MODULE_UNLOAD, domain=DRIVER)


@pytest.mark.parametrize("attribution", ["callback", "external", "none"])
@pytest.mark.parametrize("duration_ns", [100, 50_000])
def test_names_are_those_at_the_launch(sim: SimDevice, attribution: str, duration_ns: int) -> None:
    """Each module's names take the place in memory of the one before; nothing is flushed in between."""
    prof = cuptiprof.profile(device="sim", activities=["kernel"])
    prof._attribution = attribution
    with prof:
        device = SimDevice()
        for i in range(ROUNDS):
            device.launch(f"module_{i:03}", count=LAUNCHES, duration_ns=duration_ns)
            unload(device)
    assert Counter(prof.result().kernels["name"]) == {f"module_{i:03}": LAUNCHES for i in range(ROUNDS)}


def test_unloaded_while_nothing_is_collected(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.launch("before", count=LAUNCHES)
        prof.pause()
        unload(device)
        device.launch("paused", count=LAUNCHES)
        prof.resume()
        device.launch("after", count=LAUNCHES)
    assert Counter(prof.result().kernels["name"]) == {"before": LAUNCHES, "after": LAUNCHES}


def test_a_context_that_goes_takes_its_modules(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.launch("gone", count=LAUNCHES, context=7, duration_ns=10_000)
        device.call(Op.CONTEXT_DESTROY, domain=DRIVER, context=7)
        # The records lay in a buffer of this thread's, and are with the decoder already.
        assert prof._session.counts()["kernels_received"] == LAUNCHES
    assert set(prof.result().kernels["name"]) == {"gone"}


def test_an_unload_does_not_wait_for_ever(sim: SimDevice) -> None:
    """A library that fails to flush must not stop the program."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.launch("k", count=LAUNCHES)
        device.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999, c=1)
        unload(device)
        device.launch("k", count=LAUNCHES)
    assert len(prof.result().kernels) == 2 * LAUNCHES
