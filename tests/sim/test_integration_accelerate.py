"""Accelerate's own ``accelerator.profile()`` with our ProfileKwargs, on the simulated device."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState

import cuptiprof
from cuptiprof.errors import DeviceError, ResultError, SessionError
from cuptiprof.integrations.accelerate import ProfileKwargs


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Accelerate keeps its state for the process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    PartialState._reset_state()


def train(accelerator: Any, prof: Any = None, steps: int = 4, error: BaseException | None = None) -> None:
    net = torch.nn.Linear(8, 4)
    model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
    for step in range(steps):
        with cuptiprof.region("fwd"):
            loss = model(torch.ones(2, 8)).square().mean()
        if error is not None and step == 2:
            raise error
        with cuptiprof.region("bwd"):
            accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if prof is not None:
            prof.step()


def gemms(result: cuptiprof.Result, column: str) -> Counter[Any]:
    k = result.kernels
    return Counter(v for v, name in zip(k[column].tolist(), k["name"], strict=True) if "gemm" in name)


@pytest.mark.parametrize("how", ["kwargs_handlers", "profile"])
def test_the_import_is_what_changes(tmp_path: Path, how: str) -> None:
    handler = ProfileKwargs(
        activities=["cpu", "cuda"], output_trace_dir=str(tmp_path / "traces"), folder=tmp_path / "runs", device="sim"
    )
    accelerator = Accelerator(cpu=True, kwargs_handlers=[handler] if how == "kwargs_handlers" else None)
    with accelerator.profile(None if how == "kwargs_handlers" else handler) as prof:
        train(accelerator, prof)
    result = prof.result()
    assert gemms(result, "step") == {1: 2, 2: 2, 3: 2, 4: 2} and gemms(result, "region") == {"fwd": 4, "bwd": 4}
    assert "CUDA" in prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=5)
    trace = json.loads((tmp_path / "traces" / "profile_0.json").read_text())
    assert sum(event.get("cat") == "kernel" for event in trace["traceEvents"]) == len(result.kernels)
    saved = cuptiprof.open(tmp_path / "runs" / "profile.cuptiprof")
    assert len(saved.kernels) == len(result.kernels) and saved.metadata["framework"] == "accelerate"


def test_a_schedule_and_a_handler(tmp_path: Path) -> None:
    seen: list[Counter[Any]] = []
    handler = ProfileKwargs(
        schedule_option={"wait": 1, "warmup": 0, "active": 1, "repeat": 2},
        on_trace_ready=lambda prof: seen.append(gemms(prof.result(), "step")),
        folder=tmp_path,
        device="sim",
        kernels="*gemm*",
    )
    accelerator = Accelerator(cpu=True, kwargs_handlers=[handler])
    for _ in range(2):
        with accelerator.profile() as prof:
            train(accelerator, prof)
    assert seen == [{2: 2}, {4: 2}] * 2
    names = ["profile-2.cuptiprof", "profile-3.cuptiprof", "profile-4.cuptiprof", "profile.cuptiprof"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names


def test_an_exception_keeps_the_result(tmp_path: Path) -> None:
    accelerator = Accelerator(cpu=True)
    with (
        pytest.raises(ValueError, match="mine"),
        accelerator.profile(ProfileKwargs(folder=tmp_path, device="sim")) as prof,
    ):
        train(accelerator, prof, error=ValueError("mine"))
    assert prof.state == "stopped" and gemms(prof.result(), "step") == {1: 2, 2: 2, 3: 1}
    assert gemms(cuptiprof.open(tmp_path / "profile.cuptiprof"), "step") == {1: 2, 2: 2, 3: 1}


def test_what_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="did you mean 'metrics'"):
        ProfileKwargs(metrcs=["ipc"])
    with pytest.raises(TypeError, match="wiat"):
        ProfileKwargs(schedule_option={"wiat": 1})
    with pytest.raises(ValueError, match="gpu"):
        ProfileKwargs(activities=["gpu"])
    with pytest.raises(SessionError, match="unknown source"):
        ProfileKwargs(sources="nvxt")
    with pytest.raises(ValueError, match="only pass one"):
        Accelerator(cpu=True, kwargs_handlers=[ProfileKwargs(), ProfileKwargs()])
    accelerator = Accelerator(cpu=True)
    with pytest.raises(ResultError), accelerator.profile(ProfileKwargs(folder="s3://bucket", device="sim")):
        raise AssertionError
    monkeypatch.setenv("CUPTIPROF_CUPTI", str(tmp_path / "none.so"))
    with pytest.raises(DeviceError), accelerator.profile(ProfileKwargs(device="cuda")):
        raise AssertionError


SCRIPT = """
from accelerate import Accelerator
from test_integration_accelerate import ProfileKwargs, train

accelerator = Accelerator(cpu=True, kwargs_handlers=[ProfileKwargs(folder="runs", output_trace_dir="traces", device="sim")])
with accelerator.profile() as prof:
    train(accelerator, prof)
"""


def test_two_ranks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{SCRIPT}")
    command = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    runs = {p.name: cuptiprof.open(p) for p in (tmp_path / "runs").iterdir()}
    ranks = {"profile-rank0.cuptiprof": 0, "profile-rank1.cuptiprof": 1}
    assert {name: run.metadata["rank"] for name, run in runs.items()} == ranks
    assert all(gemms(run, "step") == {1: 2, 2: 2, 3: 2, 4: 2} for run in runs.values())
    assert {p.name for p in (tmp_path / "traces").iterdir()} == {"profile_0.json", "profile_1.json"}
