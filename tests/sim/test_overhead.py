"""The overhead benchmark's own conditions on the stand-in: each can be had, and leaves nothing switched on."""

from __future__ import annotations

import pytest

from benchmarks.overhead import workloads_sim
from benchmarks.overhead.conditions import imported, our_conditions
from benchmarks.overhead.peers import peers
from cuptiprof.sim.sim_device import SimDevice

CONDITIONS = [imported(), *our_conditions("sim")]


@pytest.mark.parametrize("condition", [c for c in CONDITIONS if not c.reason], ids=lambda c: c.name)
def test_each_condition_starts_and_stops_twice(sim: SimDevice, condition) -> None:  # type: ignore[no-untyped-def]
    made, reasons = workloads_sim.workloads()
    by_name = {w.name: w for w in made}
    assert set(by_name) | set(reasons) == {"launch_loop", "launch_loop_8_threads", "inference", "training", "graph_replay", "triton"}  # fmt: skip
    for name, kernels in (("training", 1500), ("graph_replay", 16 * 64)):
        region = condition.start()
        by_name[name].prepare()
        by_name[name].step(region)
        outcome = condition.stop()
        if condition.name.startswith(("kernels", "default")):
            assert outcome.records == kernels
            assert not outcome.losses
        SimDevice().reset()  # refused while anything is on


def test_peers_without_a_gpu_are_rows_with_a_reason() -> None:
    reasons = {c.name: c.reason for c in peers("sim")}
    assert reasons["nvtx alone"] == ""
    assert all("GPU" in reasons[n] for n in ("torch.profiler", "Proton", "cupti-python"))
