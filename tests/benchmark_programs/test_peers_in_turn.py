"""Before, after and beside another profiler: the procedure itself, with a made-up one on the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from benchmarks.gpu_work import SimWork
from benchmarks.probes import peers
from cuptiprof.session import profile
from cuptiprof.sim.sim_device import Fault, SimDevice

TRACING = {"activities": ["kernel"]}


class MadeUp(peers.Peer):
    """Counts what the simulated machine launched while it was open; `breaks`: how it greets whoever starts it."""

    def __init__(self, sim: SimDevice, breaks: str = "") -> None:
        self._sim, self._breaks, self._count = sim, breaks, 0

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._breaks:
            raise RuntimeError(self._breaks)
        before = self._sim.truth()["kernels"]
        yield
        self._count = self._sim.truth()["kernels"] - before

    def tool(self) -> AbstractContextManager[object]:
        return self._open()

    def kernels(self) -> int:
        return self._count


def test_in_turn_each_gets_all(sim: SimDevice) -> None:
    found = peers._in_turn(SimWork(), MadeUp(sim), TRACING)
    assert found["each got all"] is True
    assert [found[k]["kernels"] for k in ("ours first", "theirs after ours", "ours after theirs", "theirs again")] == [100] * 4  # fmt: skip


def test_a_peer_that_breaks_is_an_answer(sim: SimDevice) -> None:
    found = peers._in_turn(SimWork(), MadeUp(sim, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"), TRACING)
    assert found["theirs after ours"] == {"refused": "RuntimeError: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"}
    assert found["ours after theirs"]["kernels"] == 100 and found["each got all"] is False
    beside = peers._beside(SimWork(), MadeUp(sim, "busy"), TRACING)
    assert beside["ours outside"]["theirs refused"] == "RuntimeError: busy" and beside["ours outside"]["ours"]["kernels"] == 0  # fmt: skip


def test_who_is_refused_says_so(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = profile.open_device

    def held(*args: Any, **keywords: Any) -> Any:
        device = ordinary(*args, **keywords)  # which makes a fresh machine
        sim.inject(Fault.OTHER_SUBSCRIBER, "Proton")
        return device

    monkeypatch.setattr(profile, "open_device", held)
    found = peers._in_turn(SimWork(), MadeUp(sim), TRACING)
    assert "Proton" in found["ours first"]["refused"] and found["theirs after ours"]["kernels"] == 100
    assert found["each got all"] is False


def test_beside_with_counters(sim: SimDevice) -> None:
    found = peers._beside(SimWork(), MadeUp(sim), {**TRACING, "metrics": peers.ONE_PASS, "strategy": "replay"})
    for order in ("theirs outside", "ours outside"):
        assert found[order]["ours"]["kernels"] == found[order]["ours"]["counted"] == 100
    assert found["ours outside"]["theirs"] == 100


def test_without_a_gpu_or_the_tool_the_reason_stands_there() -> None:
    assert "not applicable" in peers.proton_beside(SimWork())

    class OnGpu(SimWork):
        device = "cuda"

    def absent() -> peers.Peer:
        raise ImportError("No module named 'triton'")

    assert peers._with(OnGpu(), absent, peers._beside) == {"not applicable": "No module named 'triton'"}
