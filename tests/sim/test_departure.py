"""CUPTI leaves the process during a session: after a fatal error by itself, or finalized by another tool."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from own_time import takes_less_than

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import SessionError
from cuptiprof.session.assemble import DepartedWarning
from cuptiprof.sim.sim_device import DRIVER, Fault, Op, SimDevice

FATAL, WARNING = 1, 3
CHEAP = ["achieved_occupancy", "ipc", "dram_read_throughput"]


def fatal(sim: SimDevice) -> None:
    sim.report_state(FATAL, 999, "the worker thread died")


def finalized(sim: SimDevice) -> None:
    sim._lib.cuptiFinalize()


LEAVES = pytest.mark.parametrize("leaves", [fatal, finalized])
Leaves = Callable[[SimDevice], None]


def said(result: Result, leaves: Leaves) -> None:
    note = result.metadata["note"]
    if leaves is fatal:
        assert "fatal error (999: the worker thread died)" in note
    else:
        assert "cuptiFinalize" in note
    assert result.losses["departed"] == 1 and "what came after is missing" in note


def whole(sim: SimDevice) -> None:
    """The next session has everything."""
    with cuptiprof.profile(device="sim", metrics=CHEAP) as prof:
        sim.launch("later", count=10)
    result = prof.result()
    assert len(result.kernels) == len(result.metric_ranges) == 10
    assert not {k: v for k, v in dict(result.losses).items() if v}
    assert "note" not in result.metadata


@LEAVES
def test_the_result_says_so(sim: SimDevice, leaves: Leaves) -> None:
    prof = cuptiprof.profile(device="sim")
    prof.start()
    sim.launch("before", count=20)
    sim.synchronize()
    sim._lib.cuptiActivityFlushAll(0)
    sim.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999)  # the decoder flushes too, now and then
    sim.launch("lost", count=5)
    leaves(sim)
    sim.clear_faults()
    sim.launch("unseen", count=30)
    with takes_less_than(0.9), pytest.warns(DepartedWarning):  # nothing comes any more, so nothing is waited for
        result = prof.stop()
    said(result, leaves)
    assert list(result.kernels["name"]) == ["before"] * 20 and result.losses["unreconciled_launches"] == 5
    whole(sim)


@LEAVES
def test_while_it_is_paused(sim: SimDevice, leaves: Leaves) -> None:
    prof = cuptiprof.profile(device="sim")
    prof.start()
    sim.launch("before", count=20)
    prof.pause()
    leaves(sim)
    with pytest.raises(SessionError, match="what came after is missing") as e:
        prof.resume()
    assert "start a new session" in e.value.hint
    with pytest.warns(DepartedWarning):
        result = prof.stop()
    said(result, leaves)
    assert len(result.kernels) == 20
    whole(sim)


@LEAVES
@pytest.mark.parametrize("strategy", ["replay", "range", "sample"])
def test_while_counters_are_read(sim: SimDevice, leaves: Leaves, strategy: str) -> None:
    prof = cuptiprof.profile(device="sim", metrics=CHEAP, strategy=strategy)
    prof.start()
    with cuptiprof.region("r"):
        sim.launch("before", count=3)
    leaves(sim)
    sim.launch("unseen", count=3)
    with pytest.warns(UserWarning):
        said(prof.stop(), leaves)
    whole(sim)


def test_a_warning_is_no_departure(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        sim.report_state(WARNING, 1, "something small")
        sim.launch("k", count=5)
    assert len(prof.result().kernels) == 5 and not prof.result().losses


def test_cupti_stays_where_graphs_were_made(sim: SimDevice) -> None:
    """Programs have crashed when CUPTI came back after it was taken out of a process with CUDA graphs."""
    with cuptiprof.profile(device="sim") as prof:
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=3, domain=DRIVER)
        sim.launch("node", stream=3)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=3, domain=DRIVER)
    prof.detach(finalize=True)  # captured, but nothing was made of it
    with cuptiprof.profile(device="sim") as prof:
        sim.call(Op.GRAPH_LAUNCH, graph_id=5)
    with pytest.raises(SessionError, match="CUDA graphs") as e:
        prof.detach(finalize=True)
    assert "112507" in str(e.value) and "stop()" in e.value.hint
    assert len(prof.detach().kernels) == 1
    whole(sim)
