"""Pausing beside the program's own cudaProfilerStart and cudaProfilerStop, and beside a schedule."""

from __future__ import annotations

import cuptiprof
from cuptiprof.sim.device import Op, SimDevice


def test_a_pause_leaves_the_programs_window_as_it_is(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", profile_from_start=False) as prof:
        sim.call(Op.PROFILER_START)
        sim.launch("before")
        prof.pause()
        sim.launch("paused")
        prof.resume()
        assert prof.state == "running"
        sim.launch("after")
        sim.call(Op.PROFILER_STOP)
        sim.launch("outside")
    assert list(prof.result().kernels["name"]) == ["before", "after"]


def test_a_window_that_opens_in_a_pause_opens_with_the_resume(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", profile_from_start=False) as prof:
        prof.pause()
        sim.call(Op.PROFILER_START)
        assert prof.state == "paused"
        sim.launch("paused")
        prof.resume()
        sim.launch("seen")
        prof.pause()
        sim.call(Op.PROFILER_STOP)
        prof.resume()
        assert prof.state == "armed"
        sim.launch("outside")
    assert list(prof.result().kernels["name"]) == ["seen"]


def test_the_schedule_goes_on_after_a_pause(sim: SimDevice) -> None:
    names = []
    plan = cuptiprof.schedule(wait=0, warmup=1, active=1)
    with cuptiprof.profile(
        device="sim", schedule=plan, on_ready=lambda p: names.append(list(p.result().kernels["name"]))
    ) as prof:
        for step in range(4):
            sim.launch(f"k{step}")
            prof.pause()  # in a warm-up, and in the last active step
            sim.launch("paused")
            prof.step()
    assert names[:2] == [["k1"], ["k3"]]
