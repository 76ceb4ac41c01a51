"""Kernel records point at their names, in memory that may go with the module: names are those at the launch all the same."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

import pytest
from own_time import takes_less_than

import cuptiprof
from cuptiprof.sim.sim_device import DRIVER, Fault, Op, SimDevice

ROUNDS, LAUNCHES = 12, 300


def unload(device: SimDevice) -> None:
    device.call(Op.MODULE_UNLOAD, domain=DRIVER)


@pytest.mark.parametrize("duration_ns", [100, 50_000])
def test_names_are_those_at_the_launch(sim: SimDevice, duration_ns: int) -> None:
    """Each module's names take the place in memory of the one before, and most kernels end after it."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
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


LONG = 1_500_000_000


def test_an_unload_does_not_wait_for_the_gpu(sim: SimDevice) -> None:
    """A kernel may be waiting for one that this thread is yet to launch."""
    prof = cuptiprof.profile(device="sim", activities=["kernel"])
    prof.start()
    device = SimDevice()
    device.launch("waits", duration_ns=LONG, stream=3)
    device.launch("done", count=LAUNCHES, stream=4)
    with takes_less_than(0.6):
        unload(device)
    device.launch("other", count=LAUNCHES, stream=4)
    assert Counter(prof.stop().kernels["name"]) == {"waits": 1, "done": LAUNCHES, "other": LAUNCHES}


def driver(device: SimDevice) -> Any:
    lib = device._lib
    assert lib.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0
    return lib


def test_a_release_that_is_not_the_last_costs_nothing(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        device.launch("k", count=LAUNCHES)
        device.synchronize()
        lib = driver(device)
        before = device.truth()
        assert lib.cuDevicePrimaryCtxRelease_v2(0) == 0
        after = device.truth()
        assert after["buffers_completed"] == before["buffers_completed"]  # nothing was flushed
        assert after["api_calls"] == before["api_calls"]  # nor waited for
        device.launch("k", count=LAUNCHES)
    assert len(prof.result().kernels) == 2 * LAUNCHES


@pytest.mark.parametrize("call", ["cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2"])
def test_the_last_release_takes_the_names(sim: SimDevice, call: str) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        for name in ("one", "two", "six"):
            device.launch(name, count=LAUNCHES)
            assert getattr(device._lib, call)(0) == 0
    assert Counter(prof.result().kernels["name"]) == dict.fromkeys(("one", "two", "six"), LAUNCHES)


def test_graph_nodes_have_the_names_they_were_captured_with(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        device = SimDevice()
        for i in range(ROUNDS):
            device.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=i + 1, stream=5)
            device.launch(f"node_{i:03}", count=10, duration_ns=100_000, stream=5)
            device.call(Op.GRAPH_END_CAPTURE, graph_id=i + 1, stream=5)
            device.call(Op.GRAPH_LAUNCH, graph_id=i + 1, stream=5)
            unload(device)
    assert Counter(prof.result().kernels["name"]) == {f"node_{i:03}": 10 for i in range(ROUNDS)}
