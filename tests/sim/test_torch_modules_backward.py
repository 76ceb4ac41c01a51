"""The module of what backward launches, on the engine's own threads: that of the operator which made the node."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cuptiprof
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.session.torch_modules import UNATTRIBUTED

PROGRAMS = [
    "a_perceptron", "a_cnn", "a_transformer", "checkpoints_reentrant", "checkpoints", "an_lstm", "a_gru", "an_rnn", "one_module_twice",
    "optimizers", "compiled", "two_trainers", "a_server", "a_loader", "accumulation", "a_function_of_its_own", "an_exception_in_backward",
    "two_backwards", "gradients", "an_evaluation_in_a_step", "scopes_of_torch",
]  # fmt: skip


def run(*options: str) -> dict[str, Any]:
    """A line of each program by its name, from a process of their own: a backend is registered for good."""
    command = [sys.executable, "-m", "torch_programs", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return {line["program"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("sources", [["modules"], ["modules", "operators"]], ids=" ".join)
def test_launches_belong_where_the_program_says(sources: list[str]) -> None:
    lines = run(*PROGRAMS, "--source", *sources)
    assert list(lines) == PROGRAMS
    assert {name: line["wrong"] for name, line in lines.items() if line["wrong"] or line["launches"] < 10} == {}


def test_hooks_before_a_node_are_of_no_known_module() -> None:
    """The engine calls them before it says which node it is."""
    wrong = run("tensor_hooks", "--source", "modules")["tensor_hooks"]["wrong"]
    assert wrong and all(line.startswith(f"{{'module': '{UNATTRIBUTED}'}} instead") for line in wrong)


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def _train(model: nn.Module) -> None:
    model(torch.ones(3, 4)).sum().backward()


def test_rows_of_operators_have_modules() -> None:
    model = _model()
    with cuptiprof.profile(device="sim", sources=["modules", "operators"]) as prof:
        _train(model)
    operators = prof.result().operators
    found = set(zip(operators["name"], operators["module"], strict=True))
    assert ("aten::linear", "Sequential.0") in found and ("ReluBackward0", "Sequential.1") in found
    assert {module for name, module in found if name == "AddmmBackward0"} == {"Sequential.0", "Sequential.2"}
    assert {module for name, module in found if name == "aten::t"} >= {"Sequential.0"}  # it launches nothing


def test_backward_of_a_forward_that_nobody_saw() -> None:
    model = _model()
    loss = model(torch.ones(3, 4)).sum()
    with cuptiprof.profile(device="sim", sources="modules") as prof:
        loss.backward()
    kernels = prof.result().kernels
    assert set(kernels["module"][kernels["backward"] == 1]) <= {UNATTRIBUTED, ""}
    assert UNATTRIBUTED in set(kernels["module"])


def test_backward_is_counted_with_its_module() -> None:
    model = _model()
    chosen = KernelFilter(modules="Sequential.2")
    with cuptiprof.profile(device="sim", kernels=chosen, metrics=["achieved_occupancy"]) as prof:
        _train(model)
    result = prof.result()
    directions = result.kernels["backward"]
    assert set(result.kernels["module"]) == {"Sequential.2"} and set(directions) == {0, 1}
    assert np.isin(result.kernels["correlation_id"], result.metric_ranges["correlation_id"]).all()
