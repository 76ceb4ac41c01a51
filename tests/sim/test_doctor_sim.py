"""The doctor on the simulated device, where tracing works."""

from __future__ import annotations

import json

import pytest

from cuptiprof import _core
from cuptiprof.data.activities import KINDS
from cuptiprof.doctor import diagnose
from cuptiprof.doctor.printed import diagnosis_text
from cuptiprof.errors import CuptiError, DeviceError
from cuptiprof.session.profile import profile
from cuptiprof.sim.sim_device import Fault, SimDevice, library_path


def test_everything_works() -> None:
    report = diagnose("sim")
    assert report.can_trace and report.simulated
    assert report.trial["kernels"] == report.trial["memcpys"] == report.trial["memsets"] == 1
    assert report.trial["losses"] == {}
    assert report.findings == []
    assert {f.works for f in report.features} == {True}
    assert {f"activity {name}" for name in KINDS} <= {f.name for f in report.features}
    assert report.libcupti["path"] == str(library_path())
    assert json.loads(json.dumps(report.data()))["simulated"] is True
    text = diagnosis_text(report)
    assert "simulated" in text.splitlines()[0]
    assert text.endswith("Tracing works on the simulated device.")


def test_it_does_not_disturb_a_session_of_this_process(sim: SimDevice) -> None:
    with profile(device="sim") as session:
        assert diagnose("sim").can_trace
        sim.launch("mine")
    assert list(session.result().kernels["name"]) == ["mine"]


def test_unknown_device() -> None:
    with pytest.raises(DeviceError, match="unknown device 'replay'"):
        diagnose("replay")


def test_the_holder_of_cupti_is_named(sim: SimDevice) -> None:
    library = _core.load_cupti(str(library_path()), "test", True)
    sim.inject(Fault.OTHER_SUBSCRIBER, "Proton")
    with pytest.raises(CuptiError) as e:
        library.try_subscribe()
    assert e.value.code == 39
    assert 'it calls itself "CUPTI for Proton"' in str(e.value)
    assert "torch.profiler" in e.value.hint
    sim.clear_faults()
    library.try_subscribe()  # nothing was left behind
    sim.reset(cupti_version=120600)  # which has no name to give
    sim.inject(Fault.OTHER_SUBSCRIBER, "Proton")
    with pytest.raises(CuptiError, match="holds CUPTI\n"):
        library.try_subscribe()
