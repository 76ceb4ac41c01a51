"""The work that benchmarks give to a GPU, on the stand-in."""

from __future__ import annotations

import time

import cuptiprof
from benchmarks.gpu_work import instant_waits
from cuptiprof.session import profile
from cuptiprof.sim.sim_device import SimDevice


def test_waits_are_instant_in_sessions_opened_inside() -> None:
    ordinary = profile.open_device
    with instant_waits("sim"), cuptiprof.profile(device="sim") as prof:
        began = time.monotonic()
        SimDevice().launch("slow", duration_ns=60_000_000_000)
        SimDevice().synchronize()
        assert time.monotonic() - began < 30
    assert len(prof.result().kernels) == 1
    assert profile.open_device is ordinary
