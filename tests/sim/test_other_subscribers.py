"""Beside another client of CUPTI: both orders, by the rules of a library that lets one subscribe, and what is said."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterator

import pytest
from kineto_like import KinetoLike

import cuptiprof
from cuptiprof import _core
from cuptiprof.device.devices import Device
from cuptiprof.errors import CuptiError
from cuptiprof.session.beside_kineto import TorchProfilerWarning
from cuptiprof.sim.sim_device import SimDevice, library_path


def device() -> Device:
    return Device("cuda", _core.load_cupti(str(library_path()), "test", True))


@pytest.fixture
def kineto(sim: SimDevice) -> Iterator[KinetoLike]:
    """As in released PyTorch."""
    client = KinetoLike(released=True)
    yield client
    client.gone()


def test_after_torch_profiler_cupti_is_kept(sim: SimDevice, kineto: KinetoLike) -> None:
    """Its profile is over, its subscription is not; stopping it cannot help."""
    kineto.start()
    kineto.stop()
    assert kineto.status == 0
    with pytest.raises(CuptiError) as e:
        cuptiprof.profile(device=device()).start()
    assert "another tool in this process holds CUPTI" in str(e.value)
    assert "torch.profiler, once used, keeps it until the process ends" in e.value.hint
    assert "TEARDOWN_CUPTI=1" in e.value.hint
    assert "up to CUDA 13.2 one tool at a time can subscribe" in e.value.hint
    kineto.start()  # and it goes on as if we had not been there
    sim.launch("k", count=10)
    kineto.stop()
    assert kineto.bytes > 0


@pytest.mark.parametrize(("version", "said"), [(120600, True), (130001, True), (130400, False)])
def test_one_tool_at_a_time_is_said_of_libraries_that_it_holds_for(
    sim: SimDevice, kineto: KinetoLike, version: int, said: bool
) -> None:
    sim.reset(virtual_clock=True, cupti_version=version)
    kineto.start()
    kineto.stop()
    with pytest.raises(CuptiError) as e:
        cuptiprof.profile(device=device()).start()
    assert ("one tool at a time" in e.value.hint) is said


def test_teardown_lets_go(sim: SimDevice, kineto: KinetoLike) -> None:
    """TEARDOWN_CUPTI=1: unsubscribe and cuptiFinalize in the next call (CuptiCallbackApi::__callback_switchboard)."""
    kineto.start()
    kineto.stop()
    assert kineto.lib.cuptiUnsubscribe(kineto.subscriber) == 0
    assert kineto.lib.cuptiFinalize() == 0
    with cuptiprof.profile(device=device()) as prof:
        sim.launch("k", count=10)
    assert len(prof.result().kernels) == 10
    assert not prof.result().losses


def test_a_session_before_its_first_use_does_it_no_harm(sim: SimDevice, kineto: KinetoLike) -> None:
    with cuptiprof.profile(device=device()) as prof:
        sim.launch("k", count=10)
    kineto.start()
    assert kineto.status == 0
    sim.launch("k", count=10)
    kineto.stop()
    assert kineto.bytes > 0
    assert len(prof.result().kernels) == 10


def test_first_used_inside_a_session_it_is_refused_for_good(sim: SimDevice, kineto: KinetoLike) -> None:
    prof = cuptiprof.profile(device=device()).start()
    kineto.start()
    assert kineto.status == 39
    prof.stop()
    kineto.start()
    assert kineto.status == 39  # it does not ask again
    kineto.stop()


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_client_that_does_not_subscribe(sim: SimDevice, order: str) -> None:
    """Newer Kineto. One after the other, each gets its own."""
    newer = KinetoLike(released=False)

    def theirs() -> None:
        newer.start()
        sim.launch("theirs", count=10)
        newer.stop()

    if order == "before":
        theirs()
    with cuptiprof.profile(device=device(), activities=["kernel"]) as prof:
        sim.launch("ours", count=10)
    if order == "after":
        theirs()
    assert newer.bytes > 0
    assert list(prof.result().kernels["name"]) == ["ours"] * 10
    assert not prof.result().losses
    newer.gone()


class Activity:
    def __init__(self, name: str) -> None:
        self.name = name


class profile:
    """torch.autograd.profiler.profile, as far as its start goes."""

    def __init__(self, *activities: str) -> None:
        self.kineto_activities = {Activity(a) for a in activities}
        self.started = 0

    def _start_trace(self) -> None:
        self.started += 1


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """What the watch looks at of an imported torch."""
    torch = types.ModuleType("torch")
    torch._C = types.SimpleNamespace(_autograd=types.SimpleNamespace(_profiler_enabled=lambda: False))  # type: ignore[attr-defined]
    module = types.ModuleType("torch.autograd.profiler")
    module.profile = type("profile", (profile,), {"_start_trace": profile._start_trace})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.autograd.profiler", module)
    return module


def test_torch_profiler_started_inside_a_session_is_warned_of(sim: SimDevice, torch: types.ModuleType) -> None:
    profiler = torch.profile("CPU", "CUDA")
    original = torch.profile._start_trace
    with (
        cuptiprof.profile(device=device()),
        pytest.warns(TorchProfilerWarning, match="Stop the session first"),
    ):
        profiler._start_trace()
    assert profiler.started == 1
    assert torch.profile._start_trace is original
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profiler._start_trace()  # the session is over
        with cuptiprof.profile(device=device()):
            torch.profile("CPU")._start_trace()  # without CUPTI
        simulated = device()
        simulated.simulated = True
        with cuptiprof.profile(device=simulated):
            profiler._start_trace()  # not the CUPTI that torch uses


def test_torch_profiler_that_runs_already_is_warned_of(sim: SimDevice, torch: types.ModuleType) -> None:
    sys.modules["torch"]._C._autograd._profiler_enabled = lambda: True
    with pytest.warns(TorchProfilerWarning, match="one after"), cuptiprof.profile(device=device()):
        pass


def test_somebody_elses_wrapper_stays(sim: SimDevice, torch: types.ModuleType) -> None:
    def theirs(_profiler: object) -> None: ...

    with cuptiprof.profile(device=device()):
        torch.profile._start_trace = theirs
    assert torch.profile._start_trace is theirs
