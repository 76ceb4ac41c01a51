"""Rates of counted kernels are over the kernel's own time, whatever the stand-in's user ranges take of the host's.

On NVIDIA's libcupti a user range runs from its push to its pop; see "Counters: ranges" in docs/simulated-device.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from own_time import takes_less_than

import cuptiprof
from cuptiprof.sim.sim_device import Fault, Op, SimDevice

TIMED = [
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.avg",
    "dram__bytes_read.sum.per_second",
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
]


@pytest.mark.parametrize("strategy", ["replay", "iterate"])
@pytest.mark.parametrize("selected", [None, "counted*"])
def test_rates_of_short_kernels_are_over_their_own_time(sim: SimDevice, strategy: str, selected: str | None) -> None:
    sim.launch("warm up")
    with cuptiprof.profile(device="sim", metrics=TIMED, strategy=strategy, kernels=selected) as prof:
        ops = {f"counted{i}": sim.ops(1, Op.KERNEL, name=f"counted{i}", duration_ns=5_000 * (i + 1)) for i in range(4)}
        for _ in range(10):
            for op in ops.values():
                sim.run(op)
                sim.advance(sim.now() + 20_000)  # the host does something else
            if selected:
                sim.launch("other", duration_ns=1000)
    result = prof.result()
    assert not result.losses
    names = [str(n) for n in result.metric_ranges["name"]]
    assert len(names) == (40 if strategy == "replay" else 4)
    for metric in TIMED:
        truth = [float(sim.true_metric(metric, ops[n])[0]) for n in names]
        np.testing.assert_allclose(result.counters[metric], truth, rtol=1e-9, err_msg=metric)


def test_what_still_runs_on_another_stream_is_waited_for(sim: SimDevice) -> None:
    """A selected launch that comes while an earlier kernel runs elsewhere is counted without it."""
    sim.launch("warm up")
    with cuptiprof.profile(device="sim", metrics=["sm__inst_executed.sum", TIMED[0]], kernels="short") as prof:
        for _ in range(8):
            sim.launch("long", stream=11, grid=(4000, 1, 1), duration_ns=1_000_000)
            sim.launch("short", stream=12, duration_ns=5_000)
    result = prof.result()
    op = sim.ops(1, Op.KERNEL, name="short", grid=(1, 1, 1), block=(128, 1, 1), duration_ns=5_000)
    assert not result.losses and len(result.metric_ranges) == 8
    for metric in ("sm__inst_executed.sum", TIMED[0]):
        np.testing.assert_allclose(result.counters[metric], [float(sim.true_metric(metric, op)[0])] * 8, rtol=1e-9)


def test_what_runs_for_long_beside_a_selected_launch_is_said(sim: SimDevice) -> None:
    """Nobody waits without a limit: the launch goes on and is counted as mixed, the next one does not wait again."""
    sim.reset()
    sim.launch("warm up")
    with cuptiprof.profile(device="sim", metrics=["sm__inst_executed.sum"], kernels="short") as prof:
        sim.launch("endless", stream=11, duration_ns=1_500_000_000)
        with takes_less_than(0.6):
            sim.launch("short", stream=12, count=20)
        sim.synchronize()
        sim.launch("short", stream=12, count=2)
    result = prof.result()
    assert result.metadata["counters"]["events"] == {"mixed": 20} and result.losses["uncounted"] == 20
    assert len(result.metric_ranges) == 2


def test_launches_that_are_not_counted_between_counted_ones(sim: SimDevice) -> None:
    """Kernels that communicate and graphs run while the profiler stands aside: no range is theirs, none is mistaken."""
    sim.launch("warm up")
    with cuptiprof.profile(device="sim", metrics=["sm__inst_executed.sum"]) as prof:
        prof.pause()
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5)
        sim.launch("node", count=3)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=5)
        prof.resume()
        before = sim.truth()["ranges_collected"]
        for i in range(30):
            sim.launch(f"k{i}", grid=(i + 1, 1, 1))
            if i % 5 == 2:
                sim.launch("ncclDevKernel_AllReduce")
            if i % 7 == 3:
                sim.call(Op.GRAPH_LAUNCH, graph_id=5)
    result = prof.result()
    assert sim.truth()["ranges_collected"] - before == 30
    assert [str(n) for n in result.metric_ranges["name"]] == [f"k{i}" for i in range(30)] and not result.losses
    ops = [sim.ops(1, Op.KERNEL, name=f"k{i}", grid=(i + 1, 1, 1), block=(128, 1, 1)) for i in range(30)]
    truth = [float(sim.true_metric("sm__inst_executed.sum", op)[0]) for op in ops]
    np.testing.assert_allclose(result.counters["sm__inst_executed.sum"], truth, rtol=1e-9)


@pytest.mark.parametrize("limit", [None, 700, 100])
def test_more_ranges_than_a_pass_may_have(sim: SimDevice, limit: int | None) -> None:
    """libcupti refuses a configuration of too many ranges: fewer are asked for, and those beyond them are counted."""
    sim.launch("warm up")

    def work() -> None:
        for i in range(300):
            with cuptiprof.region(f"r{i}"):
                sim.launch("k", grid=(i + 1, 1, 1))

    with cuptiprof.profile(
        device="sim", metrics=["sm__inst_executed.sum"], strategy="range", repeatable=True, region_levels=2
    ) as prof:
        if limit:
            sim.inject(Fault.RANGE_LIMIT, a=limit)
        prof.repeat(work)
    result = prof.result()
    kept = len(result.metric_ranges)
    assert kept == (64 if limit == 100 else 300)
    assert result.losses["uncounted"] == 300 - kept
    ops = [sim.ops(1, Op.KERNEL, name="k", grid=(i + 1, 1, 1), block=(128, 1, 1)) for i in range(kept)]
    truth = [float(sim.true_metric("sm__inst_executed.sum", op)[0]) for op in ops]
    np.testing.assert_allclose(result.counters["sm__inst_executed.sum"], truth, rtol=1e-9)
