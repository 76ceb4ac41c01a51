"""Pausing beside the program's own cudaProfilerStart and cudaProfilerStop, and beside a schedule."""

from __future__ import annotations

import time

import numpy as np

import cuptiprof
from cuptiprof import _core
from cuptiprof.sim.sim_device import Op, SimDevice


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


def test_samples_of_a_closed_window_are_dropped(sim: SimDevice) -> None:
    """The sampler goes on until the thread that reads it has looked: what it gave meanwhile is not of the window."""
    sim.reset()
    interval, on = 5_000, []
    with cuptiprof.profile(
        device="sim", metrics=["ipc"], strategy="sample", sampling_interval="5us", profile_from_start=False
    ) as prof:
        for _ in range(30):
            begin = _core.now_ns()
            sim.call(Op.PROFILER_START)
            time.sleep(0.003)
            sim.call(Op.PROFILER_STOP)
            on.append((begin, _core.now_ns()))
            time.sleep(0.003)
    ranges = prof.result().metric_ranges
    samples = ranges.where(ranges["kind"] == 4)
    within = np.zeros(len(samples), bool)
    for begin, end in on:
        within |= (samples["start"] >= begin - interval) & (samples["end"] <= end + interval)
    assert len(samples) > 1_000 and within.all()
