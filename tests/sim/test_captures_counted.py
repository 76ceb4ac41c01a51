"""Counting waits for the GPU: while a stream is being captured anywhere in the process, nothing is counted."""

from __future__ import annotations

import pytest
from capturing import OTHER, STREAM, begin, captured_elsewhere, end

import cuptiprof
from cuptiprof import _core
from cuptiprof.data.result import Result
from cuptiprof.sim.sim_device import Op, SimDevice

CHEAP = ["achieved_occupancy", "ipc", "dram_read_throughput"]  # one pass together
SEVERAL = ["gld_efficiency", "inst_executed", "lts__t_sector_hit_rate.pct"]  # several passes
ROTATED = ["ipc", "inst_executed", "gld_efficiency", "l1tex__t_sector_hit_rate.pct"]  # several groups of one pass
REQUESTS = pytest.mark.parametrize(
    ("metrics", "strategy"),
    [(CHEAP, "replay"), (SEVERAL, "replay"), (ROTATED, "iterate")],
    ids=["one pass", "several passes", "iterate"],
)


def events(result: Result) -> dict[str, int]:
    return dict(result.metadata["counters"]["events"])


@REQUESTS
def test_launches_beside_a_capture_are_not_counted(sim: SimDevice, metrics: list[str], strategy: str) -> None:
    with cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy) as prof:
        sim.launch("before", count=3)
        with captured_elsewhere(sim):
            sim.launch("beside", count=300, stream=OTHER)  # more than a batch
        sim.launch("after", count=2)
    result = prof.result()
    if strategy == "replay":
        assert list(result.metric_ranges["name"]) == ["before"] * 3 + ["after"] * 2
    assert set(result.metric_ranges["name"]) == {"before", "after"}
    assert events(result) == {"captured": 2, "capturing": 300} and result.losses["uncounted"] == 302
    assert len(result.kernels) == 305 and "note" not in result.metadata


@REQUESTS
def test_a_capture_that_is_open_at_the_end(sim: SimDevice, metrics: list[str], strategy: str) -> None:
    """What waits to be decoded then is lost, and said to be."""
    for _ in range(3):  # other programs can make it late, never early
        prof = cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy)
        prof.start()
        sim.launch("before", count=3)
        with captured_elsewhere(sim):
            began = _core.now_ns()
            result = prof.stop()
            took = _core.now_ns() - began
        assert len(result.kernels) == 3
        if took < 1.9e9:
            break
    assert 0.9e9 < took < 1.9e9  # it waits once, not at each step of stopping
    if metrics is SEVERAL:  # decoded launch by launch
        assert len(result.metric_ranges) == 3 and events(result) == {"captured": 1}
    else:
        assert 1 <= events(result)["capturing"] <= 3 and len(result.metric_ranges) < 3
    with cuptiprof.profile(device="sim", metrics=metrics, strategy=strategy) as prof:
        sim.launch("later", count=3)
    assert set(prof.result().metric_ranges["name"]) == {"later"} and not prof.result().losses


def test_what_waits_to_be_decoded_comes_after_the_capture(sim: SimDevice) -> None:
    results = []
    steps = cuptiprof.schedule(wait=0, warmup=0, active=1, repeat=2)
    with cuptiprof.profile(
        device="sim",
        metrics=CHEAP,
        strategy="replay",
        schedule=steps,
        on_ready=lambda prof: results.append(prof.result()),
    ) as prof:
        sim.launch("before", count=3)
        with captured_elsewhere(sim):
            prof.step()
        sim.launch("after", count=2)
        prof.step()
    first, second = results
    assert len(first.metric_ranges) == 0 and "being captured" in first.metadata["note"]
    assert list(second.metric_ranges["name"]) == ["before"] * 3 + ["after"] * 2


def test_regions_beside_a_capture_are_not_counted(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", metrics=CHEAP, strategy="range", regions="r*") as prof:
        sim.launch("k")
        with cuptiprof.region("r1"):
            sim.launch("k")
        with cuptiprof.region("r2"):
            begin(sim)
            sim.launch("node", stream=STREAM)
            end(sim)
        with captured_elsewhere(sim):
            for _ in range(300):
                with cuptiprof.region("r3"):
                    sim.launch("k", stream=OTHER)
        with cuptiprof.region("r4"):
            sim.call(Op.GRAPH_LAUNCH, graph_id=5)
    result = prof.result()
    assert list(result.metric_ranges["name"]) == ["r1", "r4"]
    assert events(result) == {"capturing": 301}
