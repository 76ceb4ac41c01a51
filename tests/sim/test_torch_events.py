"""Where PyTorch's operators cannot be observed: its own profiler's events instead, against a session that can observe them."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
import torch

import cuptiprof
from cuptiprof import _core
from cuptiprof.session.torch_events import TorchEvents
from cuptiprof.session.torch_operators import OperatorsWarning
from cuptiprof.sim.sim_device import SimDevice

KINDS = ["kernel", "memset", "runtime", "driver"]


def make_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch in which the functions are not found; sessions of this process that found them before observe nothing now."""
    session = _core.Session
    monkeypatch.setattr(_core, "Session", lambda **options: session(**{**options, "operators": 0}))
    monkeypatch.setattr(_core, "knows_torch", lambda: False)
    monkeypatch.setattr(_core, "finds_torch", lambda path: False)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    make_unknown(monkeypatch)


class Launching(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        SimDevice().launch("k_forward", count=2)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        SimDevice().launch("k_backward")
        return gradient * 2


def train() -> None:
    x = torch.ones(4, 4, requires_grad=True)
    with cuptiprof.region("forward"), torch.profiler.record_function("mine"):
        y = Launching.apply(torch.nn.functional.linear(x, x).relu())
    y.sum().backward()
    SimDevice().launch("k_alone")


def work() -> None:
    train()
    other = threading.Thread(target=train)
    other.start()
    other.join()


def seen(result: cuptiprof.Result) -> tuple[Counter[Any], Counter[Any]]:
    """Of kernels name, operator and direction; of operators what does not depend on the order of threads."""
    kernels, operators = result.kernels, result.operators
    # The simulated device runs one operator before the program does, before torch's profiler begins.
    first = operators["start"][operators["name"] == "aten::ones"].min()
    operators = operators.where(operators["start"] >= first)
    name_of = dict(zip(operators["instance"], operators["name"], strict=True))
    return (
        Counter(zip(kernels["name"], kernels["operator"], kernels["backward"].tolist(), strict=True)),
        Counter(
            (row["name"], name_of.get(row["parent"], ""), row["sequence"] > 0, row["scope"], row["backward"],
             name_of.get(row["forward"], ""), row["region"], row["shapes"])
            for row in map(operators.row, range(len(operators)))
        ),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::cuptiprof.session.torch_operators.OperatorsWarning")
def test_events_say_what_observing_does(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {"operators": {"shapes": True}}
    with cuptiprof.profile(device="sim", activities=KINDS, sources=sources) as prof:
        work()
    observed = seen(prof.result())
    make_unknown(monkeypatch)
    with cuptiprof.profile(device="sim", activities=KINDS, sources=sources) as prof:
        work()
    kernels, operators = seen(prof.result())
    assert kernels == observed[0] and sum(kernels.values()) > 20
    assert operators == observed[1]


@pytest.mark.usefixtures("unknown")
def test_what_is_lost_is_said_once(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim", activities=KINDS, sources={"operators": "launch"})
    with pytest.warns(OperatorsWarning, match=r"cannot be observed: .*; they are what torch\.profiler says") as said:
        prof.start()
    train()
    result = prof.stop()
    assert len(said) == 1 and "no filter can choose by them" in result.metadata["note"]
    assert len(result.operators) == 0 and not result.kernels["operator_instance"].any()
    assert set(result.kernels["operator"]) >= {"mine/Launching", ""}
    assert torch.autograd.profiler.profile._prepare_trace.__module__ == "torch.autograd.profiler"


@pytest.mark.usefixtures("unknown")
@pytest.mark.filterwarnings("ignore::cuptiprof.session.torch_operators.OperatorsWarning")
def test_cycles_and_pauses_have_their_own(sim: SimDevice) -> None:
    results: list[cuptiprof.Result] = []
    schedule = cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2)
    with cuptiprof.profile(
        device="sim",
        activities=KINDS,
        sources="operators",
        schedule=schedule,
        on_ready=lambda prof: results.append(prof.result()),
    ) as prof:
        for _ in range(8):
            train()
            prof.step()
    assert [Counter(r.operators["name"])["Launching"] for r in results] == [2, 2]
    assert [Counter(r.operators["step"].tolist()).keys() for r in results] == [{3, 4}, {7, 8}]
    assert all(set(r.kernels.where(r.kernels["name"] != "k_alone")["operator_instance"] > 0) == {True} for r in results)
    with cuptiprof.profile(device="sim", activities=KINDS, sources="operators") as prof:
        train()
        prof.pause()
        train()
        prof.resume()
        train()
    assert Counter(prof.result().operators["name"])["Launching"] == 2


@pytest.mark.usefixtures("unknown")
@pytest.mark.filterwarnings("ignore::cuptiprof.session.torch_operators.OperatorsWarning")
def test_the_programs_own_use_of_torch_profiler_comes_first(sim: SimDevice) -> None:
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with cuptiprof.profile(device="sim", activities=KINDS, sources="operators") as prof:
        train()
        with torch.profiler.profile(activities=cpu) as theirs:
            train()
        train()
    assert sum(e.name == "Launching" for e in theirs.events()) == 1
    result = prof.result()
    assert Counter(result.operators["name"])["Launching"] == 1 and len(result.kernels) == 45
    assert "from then on operators are missing" in result.metadata["note"]
    with (
        torch.profiler.profile(activities=cpu) as theirs,
        cuptiprof.profile(device="sim", activities=KINDS, sources="operators") as prof,
    ):
        train()
    assert sum(e.name == "Launching" for e in theirs.events()) == 1
    assert len(prof.result().operators) == 0 and "runs already" in prof.result().metadata["note"]


@pytest.mark.usefixtures("unknown")
@pytest.mark.filterwarnings("ignore::cuptiprof.session.torch_operators.OperatorsWarning")
def test_without_api_calls_there_is_nothing_to_join_by(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"], sources="operators") as prof:
        train()
    result = prof.result()
    assert len(result.operators) and set(result.kernels["operator"]) == {""}
    assert "were not recorded" in result.metadata["note"]


def test_a_profiler_that_fails_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no such thing\nand a stack")

    events = TorchEvents(torch, shapes=False)
    monkeypatch.setattr(torch.autograd.profiler.profile, "_start_trace", fails)
    events.record(True)
    events.record(True)
    assert events.note == "torch's profiler could not be started either: no such thing" and events.take().events == []
    events.close()
