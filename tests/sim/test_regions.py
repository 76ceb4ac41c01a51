"""Regions where no GPU behaves: NVTX calls, and what the stand-in itself refuses. All else is in tests/behaviours."""

from __future__ import annotations

import pytest

import cuptiprof
from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import Op, SimDevice


def test_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    import nvtx

    calls: list[str] = []
    monkeypatch.setattr(nvtx, "push_range", lambda name: calls.append(name))
    monkeypatch.setattr(nvtx, "pop_range", lambda: calls.append("pop"))
    with cuptiprof.region("seen", nvtx=True):
        pass
    with cuptiprof.region("unseen"):
        pass
    assert calls == ["seen", "pop"]


def test_reset_is_refused_while_a_session_runs(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim"), pytest.raises(DeviceError):
        SimDevice().reset()
    SimDevice().call(Op.API)
