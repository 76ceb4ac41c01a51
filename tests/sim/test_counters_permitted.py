"""What can be known before the first launch is said at start; what other clients did meanwhile is made good."""

from __future__ import annotations

import ctypes
import re
import time

import pytest
from counter_cases import ONE_PASS, STRATEGIES, counted, machine, quiet_warnings
from own_time import takes_less_than

import cuptiprof
from cuptiprof.errors import CuptiError
from cuptiprof.sim.sim_device import Fault, Op, SimDevice

__all__ = ["machine"]


class _Params(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("private", ctypes.c_void_p)]


def deinitialize(machine: SimDevice) -> None:
    """As Kineto does after its own profile: for every client of the process."""
    params = _Params(ctypes.sizeof(_Params))
    assert machine._lib.cuptiProfilerDeInitialize(ctypes.byref(params)) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_another_client_ends_the_profiler_between_sessions(machine: SimDevice, strategy: str) -> None:
    for _ in range(3):
        with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as prof, cuptiprof.region("r"):
            machine.launch("k", duration_ns=2_000_000)
            machine.synchronize()
        assert len(prof.result().metric_ranges) > 0 and not counted(prof.result())
        deinitialize(machine)


REFUSED = [
    (35, "NVreg_RestrictProfilingToAdminUsers=0.*cap-add=SYS_ADMIN"),
    (26, "dcgmi profile --pause"),
    (33, "vGPU profile"),
    (40, "hypervisor"),
    (41, "developer tools mode"),
    (43, "whole GPU"),
    (999, "DCGM.*NVreg_Restrict.*doctor"),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("code", "cure"), REFUSED)
def test_what_forbids_counting_is_said_at_start(machine: SimDevice, strategy: str, code: int, cure: str) -> None:
    """With a context there already, as in any program that is past its first tensor."""
    machine.launch("warm")
    call = "cuptiPmSamplingEnable" if strategy == "sample" else "cuptiRangeProfilerEnable"
    machine.inject(Fault.FAIL_CALL, call, a=code)
    with takes_less_than(3), pytest.raises(CuptiError) as caught:
        cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    assert (caught.value.code, caught.value.call) == (code, call) and re.search(cure, caught.value.hint, re.S)
    machine.clear_faults()
    with quiet_warnings(), cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy):  # nothing was left
        machine.launch("k")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("code", [33, 40, 41, 43])
def test_what_forbids_counting_is_said_before_there_is_a_context(machine: SimDevice, strategy: str, code: int) -> None:
    machine.inject(Fault.NO_COUNTERS, a=code)
    with pytest.raises(CuptiError, match="no hardware counters on device 0") as caught:
        cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    assert caught.value.code == (27 if code == 43 else code) and caught.value.hint


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_counters_that_are_busy_for_a_moment_are_waited_for(machine: SimDevice, strategy: str) -> None:
    machine.launch("warm")
    call = "cuptiPmSamplingEnable" if strategy == "sample" else "cuptiRangeProfilerEnable"
    machine.inject(Fault.FAIL_CALL, call, a=26, c=3)
    with cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy) as prof, cuptiprof.region("r"):
        machine.launch("k", duration_ns=2_000_000)
        machine.synchronize()
    assert len(prof.result().metric_ranges) > 0 and not counted(prof.result())


@pytest.mark.parametrize("strategy", ["replay", "iterate", "range"])
def test_counters_that_are_busy_at_the_first_launch_are_asked_for_again(machine: SimDevice, strategy: str) -> None:
    """Without a context nothing can be tried at start."""
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS, strategy=strategy).start()
    machine.inject(Fault.COUNTERS_BUSY, a=1)
    machine.launch("warm")
    with cuptiprof.region("first"):
        machine.launch("k")
    machine.inject(Fault.COUNTERS_BUSY, a=0)
    time.sleep(0.1)
    with cuptiprof.region("second"):
        machine.launch("k")
    with quiet_warnings():
        result = prof.stop()
    assert counted(result) == {"failed": 1 if strategy == "range" else 2}
    assert len(result.metric_ranges) == 1


def test_a_capture_that_is_open_is_left_alone(machine: SimDevice) -> None:
    """Enabling may wait for the GPU, which would break it."""
    machine.launch("warm")
    machine.call(Op.GRAPH_BEGIN_CAPTURE, stream=7, graph_id=1)
    machine.inject(Fault.FAIL_CALL, "cuptiRangeProfilerEnable", a=35)
    prof = cuptiprof.profile(device="sim", metrics=ONE_PASS).start()
    machine.launch("captured", stream=7)
    machine.call(Op.GRAPH_END_CAPTURE, stream=7, graph_id=1)
    with quiet_warnings():
        prof.stop()
