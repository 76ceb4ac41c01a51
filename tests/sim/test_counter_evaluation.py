"""Values are worked out on a thread of their own: what the launching thread pays, and what becomes of values that come late."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import cuptiprof
from cuptiprof.sim.sim_device import Fault, Op, SimDevice

EVALUATE = "cuptiProfilerHostEvaluateToGpuValues"
ONE_PASS = ["inst_executed"]
SEVERAL = ["gld_efficiency", "inst_executed", "lts__t_sector_hit_rate.pct"]
MS = 1_000_000
FIRST, SECOND, THIRD = 4, 16, 64  # launches in the first batches


def test_the_launching_thread_does_not_pay_for_evaluation(sim: SimDevice) -> None:
    sim.reset()
    launches = FIRST + SECOND + THIRD - 1  # with the one before them three batches: none waits for a fourth
    with cuptiprof.profile(device="sim", metrics=ONE_PASS) as prof:
        sim.launch("warm")  # the first one makes images
        sim.inject(Fault.CALL_TIME, EVALUATE, a=8 * MS)
        before = time.monotonic()
        for _ in range(launches):
            sim.launch("k")
        launching = time.monotonic() - before
        sim.synchronize()
        assert launching < 0.006 * launches  # three quarters of what evaluation takes
    r = prof.result()
    assert len(r.metric_ranges) == launches + 1 and not r.losses
    assert list(r.metric_ranges["correlation_id"]) == sorted(r.metric_ranges["correlation_id"])


def test_launches_that_evaluation_is_too_slow_for_are_counted_as_such(sim: SimDevice) -> None:
    """Two batches are being worked on: the next launch waits a while for one of them, those after it do not wait again."""
    sim.reset()
    launches = FIRST + SECOND + 10
    with cuptiprof.profile(device="sim", metrics=ONE_PASS) as prof:
        sim.inject(Fault.CALL_TIME, EVALUATE, a=100 * MS)
        before = time.monotonic()
        for _ in range(launches):
            sim.launch("k")
        assert time.monotonic() - before < 1.5
        sim.clear_faults()
    r = prof.result()
    behind = r.metadata["counters"]["events"]["behind"]
    assert behind >= 1 and len(r.metric_ranges) + behind == launches
    assert r.losses["uncounted"] == behind and len(r.kernels) == launches


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL], ids=["one pass", "several passes"])
def test_values_of_a_context_that_ends_come_all_the_same(sim: SimDevice, metrics: list[str]) -> None:
    sim.reset()
    with cuptiprof.profile(device="sim", metrics=metrics, strategy="replay") as prof:
        sim.inject(Fault.CALL_TIME, EVALUATE, a=20 * MS)
        for context in (8, 9):
            sim.launch("k", count=3, context=context)
            sim.call(Op.CONTEXT_DESTROY, context=context)
    r = prof.result()
    assert len(r.metric_ranges) == 6 and not r.losses
    assert len(np.unique(r.counters["inst_executed"])) == 1


def test_a_result_has_all_that_was_measured_before_it(sim: SimDevice) -> None:
    """Each step's values are in its own result, however long they take."""
    sim.reset()
    results = []
    with cuptiprof.profile(
        device="sim",
        metrics=ONE_PASS,
        schedule=cuptiprof.schedule(wait=0, warmup=1, active=1, repeat=3),
        on_ready=lambda prof: results.append(prof.result()),
    ) as prof:
        sim.inject(Fault.CALL_TIME, EVALUATE, a=10 * MS)
        for step in range(6):
            sim.launch(f"k{step}", count=5)
            prof.step()
    assert [list(r.metric_ranges["name"]) for r in results] == [["k1"] * 5, ["k3"] * 5, ["k5"] * 5]


@pytest.mark.parametrize(
    "end", ["", "os._exit(0)", "sys.exit(0)", "assert os.fork() != 0 or os._exit(0) is None; os.wait()"]
)
def test_a_process_that_ends_in_the_middle(sim: SimDevice, end: str) -> None:
    program = f"""
import os, sys
import cuptiprof
from cuptiprof.sim.sim_device import Fault, SimDevice
sim = SimDevice()
prof = cuptiprof.profile(device="sim", metrics={ONE_PASS}).start()
sim.inject(Fault.CALL_TIME, "{EVALUATE}", a={5 * MS})
sim.launch("k", count=30)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
