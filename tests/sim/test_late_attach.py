"""A session in a process that uses CUDA already: CUPTI describes devices, contexts and streams when they come to be, and
that was before."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest

import cuptiprof
from cuptiprof import _core
from cuptiprof.device.devices import Device
from cuptiprof.sim.sim_device import Fault, Op, SimDevice, library_path

NAME = "NVIDIA A100-SXM4-80GB (simulated)"


class Running(Device):
    """The stand-in as it is, not reset."""

    simulated = True
    chip = "A100"


def running(cupti_version: int = 130001, devices: int = 1) -> Device:
    """A device whose program made contexts and streams before anybody looked."""
    sim = SimDevice()
    sim.reset(chip="A100", cupti_version=cupti_version, devices=devices)
    for d in range(devices):
        sim.launch("before", device=d)
    sim.call(Op.STREAM_CREATE, stream=20, priority=3)
    return Running("sim:A100", _core.load_cupti(str(library_path()), "test", True))


@pytest.mark.parametrize("version", [120600, 130001, 130400])
def test_what_was_there_before_has_rows(sim: SimDevice, version: int) -> None:
    device = running(version, devices=2)
    with cuptiprof.profile(device=device) as prof:
        sim.launch("k", device=0)
        sim.launch("k", device=1, context=9)  # a context made while the session runs
        sim.call(Op.STREAM_CREATE, stream=21)
    r = prof.result()
    assert list(r.devices["device"]) == [0, 1]
    assert set(r.devices["name"]) == {NAME}
    assert sorted(zip(r.contexts["context"], r.contexts["device"], strict=True)) == [(1, 0), (2, 1), (9, 1)]
    assert sorted(zip(r.streams["stream"], r.streams["priority"], strict=True)) == [(20, 3), (21, 0)]
    assert not r.losses


def test_one_row_each_however_often_collection_goes_on(sim: SimDevice) -> None:
    device = running()
    with cuptiprof.profile(device=device) as prof:
        for _ in range(5):
            prof.pause()
            prof.resume()
        sim.launch("k")
    r = prof.result()
    assert (len(r.devices), len(r.contexts), len(r.streams)) == (1, 1, 1)


def test_each_cycle_of_a_schedule_has_its_devices(sim: SimDevice) -> None:
    device = running()
    results = []
    with cuptiprof.profile(
        device=device,
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=1, repeat=3),
        on_ready=lambda p: results.append(p.result()),
    ) as prof:
        for _ in range(9):
            sim.launch("k")
            prof.step()
    assert len(results) == 3
    assert [(len(r.devices), len(r.contexts), len(r.streams)) for r in results] == [(1, 1, 1)] * 3


@pytest.mark.parametrize("code", [1, 7])
def test_devices_are_asked_of_the_driver_where_cupti_gives_none(sim: SimDevice, code: int) -> None:
    device = running(devices=2)
    with cuptiprof.profile(device=device) as prof:
        sim.launch("k")
    told = prof.result().devices
    sim.inject(Fault.FAIL_CALL, "cuptiActivityEnableAndDump", a=code)
    with cuptiprof.profile(device=device) as prof:
        sim.launch("k")
    r = prof.result()
    assert list(r.devices["device"]) == [0, 1]
    differ = [c for c in told.column_names if list(told[c]) != list(r.devices[c])]
    assert differ == [
        "max_ipc",
        "global_memory_bandwidth",
    ]  # the driver does not tell; the stand-in's has no memory clock


def test_no_device_before_cuda_is_up(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        pass
    assert len(prof.result().devices) == 0
    with cuptiprof.profile(device="sim") as prof:
        sim.launch("k")
    assert len(prof.result().devices) == 1


def test_reports_know_the_device(sim: SimDevice, tmp_path: Path) -> None:
    device = running()
    with cuptiprof.profile(device=device) as prof:
        sim.launch("k", grid=(1000, 1, 1), block=(256, 1, 1), registers_per_thread=32)
    prof.export(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    assert [d["name"] for d in trace["deviceProperties"]] == [NAME]
    kernel = next(e for e in trace["traceEvents"] if e.get("cat") == "kernel")
    assert kernel["args"]["est. achieved occupancy %"] > 0


def test_cuptis_own_enable_is_as_the_header_says(sim: SimDevice) -> None:
    """cuptiActivityEnable of a kind whose objects exist writes nothing."""
    running()
    before = sim.truth()["records_written"]
    lib = ctypes.CDLL(str(library_path()))
    request = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p)
    complete = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    )
    memory = ctypes.create_string_buffer(1 << 16)

    def give(buffer: object, size: object, _records: object) -> None:
        buffer[0] = ctypes.addressof(memory)  # type: ignore[index]
        size[0] = len(memory)  # type: ignore[index]

    on_request, on_complete = request(give), complete(lambda *_: None)
    assert lib.cuptiActivityRegisterCallbacks(on_request, on_complete) == 0
    for kind in (8, 9, 37):
        assert lib.cuptiActivityEnable(kind) == 0
    assert sim.truth()["records_written"] == before
    for kind in (8, 9, 37):
        assert lib.cuptiActivityEnableAndDump(kind) == 0
    assert sim.truth()["records_written"] == before + 3
    for kind in (8, 9, 37):
        assert lib.cuptiActivityDisable(kind) == 0
    assert lib.cuptiActivityFlushAll(1) == 0
    assert lib.cuptiFinalize() == 0  # the callbacks go with this function
