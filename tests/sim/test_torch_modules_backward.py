"""The module of what backward launches: that of the operator which made the node. On the engine's own threads: test_torch_programs.py."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import torch
from torch import nn

import cuptiprof
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.session.torch_modules import UNATTRIBUTED


def test_operators_need_not_be_asked_for() -> None:
    command = [sys.executable, "-m", "torch_programs", "--source", "modules", "--"]
    programs = ["a_transformer", "checkpoints", "two_trainers", "tensor_hooks"]
    done = subprocess.run([*command, *programs], capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["program"], line["wrong"]) for line in lines] == [(name, []) for name in programs], done.stderr


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
