"""Launches are reconciled with kernel records where there are any, and only there."""

from __future__ import annotations

import time

import pytest

import cuptiprof
from cuptiprof.sim.device import Flag, Op, SimDevice


@pytest.mark.parametrize("activities", [["memcpy"], ["memset", "runtime"], ["graph", "memcpy"]])
def test_a_session_without_kernels_loses_none(sim: SimDevice, activities: list[str]) -> None:
    with cuptiprof.profile(device="sim", activities=activities) as prof:
        device = SimDevice()
        device.launch("k", count=48)
        device.call(Op.MEMCPY, bytes=100, copy_kind=1)
        began = time.monotonic()
    assert time.monotonic() - began < 0.5  # nor does it wait a second for records that will not come
    result = prof.result()
    assert not result.losses, result.losses.line()
    assert len(result.kernels) == 0
    assert len(result.memcpys) == ("memcpy" in activities)
    assert result.metadata["launches"]["launches"] == 48


def test_a_kernel_record_that_never_came_is_still_missed(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel", "memcpy"]) as prof:
        device = SimDevice()
        device.launch("k", count=40)
        device.launch("k", count=8, flags=Flag.NO_RECORD)
    assert prof.result().losses["unreconciled_launches"] == 8
