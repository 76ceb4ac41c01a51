"""Counters refused, failing or lost: a clear error or a counted loss, and the program goes on.

Only the stand-in can be told to refuse a call, to lose a range, or to have several devices and contexts: these stay here.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from counter_cases import CONTEXT_DESTROY, ONE_PASS, SEVERAL, counted, inst, machine, quiet_warnings
from own_time import takes_less_than

import cuptiprof
from cuptiprof.counters.live import CounterWarning
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import CuptiError, MetricError
from cuptiprof.sim.sim_device import Fault, SimDevice

__all__ = ["machine"]


@pytest.mark.parametrize("code", [33, 40, 41, 43])
def test_machines_without_counters_say_why(machine: SimDevice, code: int) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS).start()
    machine.inject(Fault.NO_COUNTERS, a=code)
    machine.launch("k", count=5)
    with pytest.warns(CounterWarning) as said:
        result = prof.stop()
    assert len(result.kernels) == 5 and len(result.metric_ranges) == 0
    assert counted(result) == {"failed": 5} and result.losses["uncounted"] == 5
    text = str(said[0].message)
    assert "cuptiRangeProfilerEnable returned CUPTI_ERROR" in text and len(text) > 100
    assert text in result.metadata["counters"]["notes"]


@pytest.mark.parametrize("strategy", ["replay", "iterate", "range"])
def test_counters_in_use_by_another_profiler(machine: SimDevice, strategy: str) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    machine.inject(Fault.COUNTERS_BUSY, a=1)
    with cuptiprof.region("r"):
        machine.launch("k", count=5)
    with pytest.warns(CounterWarning, match=r"CUPTI_ERROR_HARDWARE_BUSY.*(DCGM|profiler|ncu)"):
        result = prof.stop()
    assert len(result.kernels) == 5 and result.losses["uncounted"] == (1 if strategy == "range" else 5)


def test_sampling_hardware_in_use_fails_at_the_start(machine: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="sample")
    machine.inject(Fault.COUNTERS_BUSY, a=1)
    with pytest.raises(CuptiError) as caught:
        prof.start()
    assert caught.value.code == 26 and caught.value.hint
    machine.clear_faults()
    machine.reset()  # nothing holds it


def test_a_metric_the_chip_lacks_names_the_chips_that_have_it() -> None:
    with pytest.raises(MetricError) as caught:
        cuptiprof.profile(device="sim:A100", metrics=["sm__inst_executed_pipe_tensor_op_gmma.sum"]).start()
    assert "GH100" in str(caught.value)


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
def test_dropped_ranges_are_counted_and_the_others_right(machine: SimDevice, metrics: list[str]) -> None:
    with cuptiprof.profile(device="sim", metrics=metrics, strategy="replay") as prof:
        machine.inject(Fault.DROP_RANGES, a=5)
        for i in range(50):
            machine.launch(f"k{i}", grid=(i + 1, 1, 1))
    result = prof.result()
    rows = len(result.metric_ranges)
    if metrics is SEVERAL:  # decoded launch by launch
        assert counted(result) == {"dropped": 10} and rows == 40
    else:  # automatic ranges are told apart by their number: one that is lost costs its batch
        assert counted(result) == {"dropped": 50 - rows} and rows >= 8
    truth = [inst(machine, n, grid=(int(n[1:]) + 1, 1, 1)) for n in result.metric_ranges["name"]]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)


@pytest.mark.parametrize("metrics", [ONE_PASS, SEVERAL])
@pytest.mark.parametrize(
    "function",
    [
        "cuptiRangeProfilerSetConfig",
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerPushRange",
        "cuptiRangeProfilerPopRange",
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData",
        "cuptiProfilerHostEvaluateToGpuValues",
    ],
)
def test_a_call_that_fails_once_costs_some_launches_no_more(
    machine: SimDevice, function: str, metrics: list[str]
) -> None:
    """What was not measured is counted, what was is right, and no profiler stays on beside launches not selected."""
    prof = cuptiprof.profile(device="sim", metrics=metrics, strategy="replay", kernels="chosen*").start()
    machine.launch("chosen", count=3)
    machine.inject(Fault.FAIL_CALL, function, a=999, b=1, c=1)
    for i in range(40):
        machine.launch(f"chosen{i}", grid=(i + 1, 1, 1))
        before = machine.truth()["ranges_collected"]
        machine.launch("other")
        assert machine.truth()["ranges_collected"] == before
    with quiet_warnings():
        result = prof.stop()
    assert len(result.kernels) == 43
    lost = sum(counted(result).values())
    assert lost + len(result.metric_ranges) == 43 and lost <= 43
    names = [str(n) for n in result.metric_ranges["name"]]
    truth = [inst(machine, n, grid=(int(n[6:] or 0) + 1, 1, 1)) for n in names]
    np.testing.assert_allclose(result.counters["inst_executed"], truth, rtol=1e-9)


@pytest.mark.parametrize("strategy", ["replay", "iterate", "range"])
def test_contexts_come_and_go(machine: SimDevice, strategy: str) -> None:
    """More of them than there is room for at a time; one is destroyed while collection is paused."""
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as prof:
        for i in range(100):
            machine.launch("warm", context=1000 + i)
            with cuptiprof.region("r"):
                machine.launch("k", context=1000 + i)
            if i % 10 == 5:
                prof.pause()
            machine.call(CONTEXT_DESTROY, context=1000 + i)  # type: ignore[arg-type]
            if i % 10 == 5:
                prof.resume()
    result = prof.result()
    assert not counted(result)
    if strategy == "range":
        np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")] * 100)
    elif strategy == "replay":
        assert len(result.metric_ranges) == 200
    else:
        assert sorted(result.metric_ranges["occurrences"]) == [100, 100]


def test_a_context_destroyed_inside_a_measured_region(machine: SimDevice) -> None:
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="range") as prof:
        machine.launch("warm", context=3)
        with takes_less_than(1), cuptiprof.region("r"):
            machine.launch("k", context=3)
            machine.call(CONTEXT_DESTROY, context=3)  # type: ignore[arg-type]
        machine.launch("warm", context=4)
        with cuptiprof.region("r"):
            machine.launch("k", context=4)
    result = prof.result()
    assert counted(result) == {"unfinished": 1}
    np.testing.assert_allclose(result.counters["inst_executed"], [inst(machine, "k")])


@pytest.mark.filterwarnings("ignore:no sample came")
def test_samples_lost_in_a_small_hardware_buffer_are_counted(machine: SimDevice) -> None:
    """A ring that the reader does not keep up with, and a buffer that stops when it is full."""
    original = cuptiprof._core.CounterOptions
    for keep_latest in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                cuptiprof._core,
                "CounterOptions",
                lambda _keep=keep_latest, **k: original(**(k | {"hardware_buffer": 16 * 6144, "keep_latest": _keep})),
            )
            with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy="sample", sampling_interval="10us") as prof:
                time.sleep(0.2)
        result = prof.result()
        truth = machine.truth()
        assert truth["samples_lost"] > 0
        if keep_latest:
            samples = result.metric_ranges
            gaps = (samples["start"][1:] - samples["end"][:-1]) // 10_000
            assert 0 < gaps.sum() == counted(result)["overwritten"] <= truth["samples_lost"]
        else:
            assert result.losses["sample_overflows"] > 0
        machine.reset()


def test_every_device_that_is_used_is_sampled(machine: SimDevice) -> None:
    with cuptiprof.profile(device=SimulatedDevice(devices=3), metrics=ONE_PASS, strategy="sample") as prof:
        machine.launch("first", device=0, duration_ns=5_000_000)
        machine.launch("warm", device=2, duration_ns=1000)
        time.sleep(0.05)
        machine.launch("third", device=2, duration_ns=5_000_000)
        machine.synchronize(device=2)
        machine.synchronize(device=0)
        time.sleep(0.01)
    ranges = prof.result().metric_ranges
    assert set(ranges["device"][ranges["kind"] == 4]) == {0, 2}
    where = {str(n): int(d) for n, d, k in zip(ranges["name"], ranges["device"], ranges["kind"], strict=True) if k == 2}
    assert where["third"] == 2
