"""torch.compile by its default backend, whose code runs outside of PyTorch's own operators, on the CPU: nothing is launched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch._inductor import config

import cuptiprof
from cuptiprof.device.devices import SimulatedDevice

PROFILERS_OWN = ("Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue", "## Call CompiledFxGraph")
"""What the compiler says of itself only while torch's own profiler runs (``torch.autograd.profiler._is_profiler_enabled``)."""


class HostOnly(SimulatedDevice):
    """PyTorch's operators launch nothing on it, and compile as without it."""

    def started(self) -> None:
        pass

    def stopping(self) -> None:
        pass


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.nn.Module]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(config, "compile_threads", 1)
    torch._dynamo.reset()
    model = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)))
    train(model)
    yield model
    torch._dynamo.reset()


def train(model: torch.nn.Module) -> None:
    model(torch.ones(3, 8)).sum().backward()


def test_compiled_code_is_whose_it_is(compiled: torch.nn.Module) -> None:
    sources = ["operators", "modules", "lines"]
    with cuptiprof.profile(device=HostOnly(), sources=sources) as prof, cuptiprof.region("train"):
        train(compiled)
    operators = prof.result().operators.sorted_by("start")
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu) as kineto:
        train(compiled)
    said = [event.name for event in kineto.events() if not event.name.startswith(PROFILERS_OWN)]
    name_of = dict(zip(operators["instance"], operators["name"], strict=True))
    # An overload within an operator of its name is one event of torch.profiler's.
    rows = map(operators.row, range(len(operators)))
    assert [row["name"] for row in rows if name_of.get(row["parent"]) != row["name"]] == said
    assert "Torch-Compiled Region: 0/0" in said
    assert set(operators["region"]) == {"train"}
    products = operators.where((operators["name"] == "aten::addmm") | (operators["name"] == "aten::mm"))
    assert products["backward"].tolist() == [0, 0, 1, 1, 1]
    assert set(products["module"]) == {"OptimizedModule"}
    assert all(line.endswith("Runner.call") for line in products["line"])  # in what the compiler wrote
