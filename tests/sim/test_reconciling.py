"""Launches are reconciled with kernel records where there are any, and only there."""

from __future__ import annotations

import pytest
from own_time import takes_less_than

import cuptiprof
from cuptiprof import _core
from cuptiprof.sim.sim_device import Fault, Flag, Op, SimDevice, library_path


@pytest.mark.parametrize("activities", [["memcpy"], ["memset", "runtime"], ["graph", "memcpy"]])
def test_a_session_without_kernels_loses_none(sim: SimDevice, activities: list[str]) -> None:
    prof = cuptiprof.profile(device="sim", activities=activities).start()
    device = SimDevice()
    device.launch("k", count=48)
    device.call(Op.MEMCPY, bytes=100, copy_kind=1)
    with takes_less_than(0.8):  # nor does it wait a second for records that will not come
        prof.stop()
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


def test_a_cooperative_launch_over_several_devices_has_a_kernel_on_each(sim: SimDevice) -> None:
    device = cuptiprof.device.devices.SimulatedDevice(devices=3)
    with cuptiprof.profile(device=device) as prof:
        sim.launch("k", domain=1, cbid=480, count=2)  # cuLaunchCooperativeKernelMultiDevice
        sim.inject(Fault.DROP_RECORDS, a=4)
        sim.launch("k", domain=1, cbid=480)
    r = prof.result()
    assert sorted(r.kernels["device"][:6]) == [0, 0, 1, 1, 2, 2]
    assert r.metadata["launches"]["launches"] == 9
    assert len(r.kernels) + r.losses["unreconciled_launches"] == 9


@pytest.mark.parametrize("cbid", [837, 838, 839, 840])
def test_copies_newer_than_our_headers_belong_to_their_region(sim: SimDevice, cbid: int) -> None:
    """cuMemcpyWithAttributesAsync and cuMemcpy3DWithAttributesAsync of CUDA 13.5."""
    sim.reset(virtual_clock=True, cupti_version=130400)
    library = _core.load_cupti(str(library_path()), "test", True)
    with cuptiprof.profile(device=cuptiprof.device.devices.Device("sim", library)) as prof, cuptiprof.region("r"):
        sim.call(Op.MEMCPY, domain=1, cbid=cbid, bytes=8)
    r = prof.result()
    assert list(r.memcpys["region"]) == ["r"]
    assert not r.losses
