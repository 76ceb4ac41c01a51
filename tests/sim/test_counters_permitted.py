"""What can be known before the first launch is said at start; what other clients did meanwhile is made good."""

from __future__ import annotations

import ctypes

import pytest
from counter_cases import ONE_PASS, SEVERAL, STRATEGIES, counted, machine

import cuptiprof
from cuptiprof.sim.device import SimDevice

__all__ = ["machine"]


class _Params(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("private", ctypes.c_void_p)]  # noqa: RUF012


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
