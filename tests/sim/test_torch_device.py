"""PyTorch scripts on the simulated GPU: unchanged results, believable launches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import cuptiprof
from cuptiprof.data.chips import BOARDS
from cuptiprof.data.result import Result
from cuptiprof.sim.pytorch.calls import Array, Call
from cuptiprof.sim.pytorch.launches import duration_ns
from cuptiprof.sim.pytorch.operators import plan
from cuptiprof.sim.roofline import KERNEL_LATENCY_NS
from cuptiprof.sim.sim_device import SimDevice

ROOT = Path(__file__).resolve().parents[2]


class Mixed(nn.Module):
    """A bit of everything that has kernels of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.embed = nn.Embedding(10, 16)
        self.attend = nn.MultiheadAttention(16, 2, batch_first=True, dropout=0.1)
        self.recur = nn.LSTM(16, 16)
        self.head = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 5))

    def forward(self, image: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        seen = self.conv(image).flatten(1).view(image.shape[0], -1, 16)
        x = torch.cat([seen, self.embed(tokens)], 1)
        x = x + self.attend(x, x, x, need_weights=False)[0]
        return self.head(self.recur(x)[0].mean(1))


def train(
    steps: int = 2, optimizer: type[torch.optim.Optimizer] = torch.optim.Adam, **options: Any
) -> list[torch.Tensor]:
    """Parameters after some steps, and the losses."""
    torch.manual_seed(1)
    model = Mixed()
    opt = optimizer(model.parameters(), **options)
    losses = []
    for _ in range(steps):
        image, tokens = torch.randn(4, 3, 8, 8), torch.randint(10, (4, 6))
        with cuptiprof.region("fwd"):
            loss = F.cross_entropy(model(image, tokens), torch.randint(5, (4,)))
        with cuptiprof.region("bwd"):
            loss.backward()
        with cuptiprof.region("opt"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        losses.append(loss.detach())
    return [p.detach().clone() for p in model.parameters()] + losses


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def profiled(function: Any, device: str = "sim") -> Result:
    with cuptiprof.profile(device=device) as prof:
        function()
    result = prof.result()
    assert not result.losses
    return result


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_results_are_bitwise_the_same(optimizer: type[torch.optim.Optimizer]) -> None:
    plain = train(optimizer=optimizer, lr=0.01)
    state = torch.random.get_rng_state()
    simulated: list[torch.Tensor] = []
    result = profiled(lambda: simulated.extend(train(optimizer=optimizer, lr=0.01)))
    assert same(plain, simulated)
    assert torch.equal(state, torch.random.get_rng_state())
    assert {"fwd", "bwd", "opt"} <= set(result.kernels["region"])
    assert result.metadata["unmodelled_operators"] == {}
    names = " ".join(result.kernels["name"])
    for family in ("gemm", "implicit_gemm", "bn_fw_tr", "bn_bw", "layer_norm", "LSTM_elementWise", "softmax", "reduce_kernel", "CatArrayBatchedCopy", "gather_kernel", "multi_tensor_apply"):  # fmt: skip
        assert family in names, family
    assert same(plain, train(optimizer=optimizer, lr=0.01))


def test_an_optimizer_step_costs_what_it_costs_on_a_gpu() -> None:
    """Over lists of tensors, and without reading the step counters back, which a GPU's optimizer keeps on the host."""
    result = profiled(lambda: train(3))
    kernels = result.kernels.where(result.kernels["region"] == "opt")
    assert len(result.memcpys.where(result.memcpys["region"] == "opt")) == 0
    steps = [n for n in kernels["name"] if "multi_tensor_apply" in n]
    # lerp, mul, addcmul, sqrt, div, add, addcdiv; clipping: norm and mul
    assert len(steps) == 3 * (7 + 2)
    forced = profiled(lambda: train(3, foreach=False))
    assert len(forced.kernels.where(forced.kernels["region"] == "opt")) > 3 * len(kernels)


def test_a_step_that_raises_holds_nothing_back() -> None:
    parameter = nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)

    class Failing(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            parameter.mul_(2)
            raise RuntimeError("no")

    def script() -> None:
        with pytest.raises(RuntimeError, match="no"):
            Failing([parameter], lr=0.1).step()
        parameter.detach().exp()

    assert ["multi_tensor" in n for n in profiled(script).kernels["name"]] == [True, False]


def test_after_the_session_nothing_is_launched() -> None:
    profiled(lambda: torch.ones(3) + 1)
    assert not _get_current_dispatch_mode_stack()
    before = SimDevice().truth()["kernels"]
    torch.ones(3) + 1
    assert SimDevice().truth()["kernels"] == before


def test_views_launch_nothing_and_reading_a_value_waits() -> None:
    x = torch.randn(8, 8)
    assert len(profiled(lambda: x.view(64).t().reshape(64)[3:5].detach().expand(2, 2)).kernels) == 0
    result = profiled(lambda: x.sum().item())
    assert len(result.kernels) == 1 and list(result.memcpys["copy_kind"]) == [2]
    assert "cudaStreamSynchronize" in set(result.api_calls["name"])
    made = profiled(lambda: torch.tensor([1.0, 2.0]))
    assert list(made.memcpys["copy_kind"]) == [1] and list(made.memcpys["bytes"]) == [8]


def test_durations_follow_the_model() -> None:
    a = torch.randn(512, 512)
    result = profiled(lambda: a @ a, "sim:A100")
    chip, shape = BOARDS["A100"], Array((512, 512), strides=(512, 1))
    expected, _ = plan(Call("mm", (shape, shape), {}, (shape,), chip))
    assert result.kernels["duration"].tolist() == [duration_ns(chip, w) for w in expected]
    assert result.kernels["duration"][0] > KERNEL_LATENCY_NS
    assert result.metadata["simulated_chip"] == "A100"


def test_reduced_precision_is_seen() -> None:
    layer, x = nn.Linear(256, 256), torch.randn(256, 256)

    def autocast() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer(x)

    names = list(profiled(autocast).kernels["name"])
    assert any("gemm_bf16bf16" in n for n in names) and any("bfloat16_copy" in n for n in names)
    before = torch.get_float32_matmul_precision()
    slow = profiled(lambda: layer(x)).kernels
    try:
        torch.set_float32_matmul_precision("high")
        fast = profiled(lambda: layer(x)).kernels
    finally:
        torch.set_float32_matmul_precision(before)
    assert "sgemm" in slow["name"][0] and "tf32" in fast["name"][0]


def test_threads_started_in_the_session_are_simulated() -> None:
    x = torch.ones(8)

    class Subclass(threading.Thread):
        def run(self) -> None:
            x.exp()

    def script() -> None:
        threads = [threading.Thread(target=x.exp), Subclass()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
            assert "run" not in vars(t)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: x.exp(), range(4)))

    start = threading.Thread.start
    result = profiled(script)
    assert len(result.kernels) == 6
    assert len(set(result.kernels["thread"])) >= 3
    assert threading.Thread.start is start


def test_stop_on_another_thread() -> None:
    prof = cuptiprof.profile(device="sim").start()
    torch.ones(2)
    errors: list[BaseException] = []

    def stop() -> None:
        try:
            prof.stop()
        except BaseException as e:
            errors.append(e)

    worker = threading.Thread(target=stop)
    worker.start()
    worker.join()
    assert not errors
    torch.ones(2)  # launches nothing any more
    assert len(prof.result().kernels) == 1
    assert len(profiled(lambda: torch.ones(2)).kernels) == 1  # once, not twice
    assert not _get_current_dispatch_mode_stack()


class Other(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_modes_of_the_program_stay_as_they_are() -> None:
    other = Other()
    with other:
        assert len(profiled(lambda: torch.ones(2)).kernels) == 1
        prof = cuptiprof.profile(device="sim").start()
        inner = Other()
        with inner:
            torch.ones(2)
            prof.stop()
            torch.ones(2)
        torch.ones(2)
        assert _get_current_dispatch_mode_stack() == [other]
    assert other.calls == 4 and inner.calls == 2
    assert len(prof.result().kernels) == 1


def test_tensors_without_work() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def script() -> None:
        torch.ones(3, device="meta") + 1
        with FakeTensorMode():
            torch.ones(3) + 1
        torch.ones(0) + 1

    assert len(profiled(script).kernels) == 0


def test_a_forked_child_launches_nothing() -> None:
    prof = cuptiprof.profile(device="sim").start()
    child = os.fork()
    if child == 0:
        before = SimDevice().truth()["kernels"]
        torch.ones(2)
        os._exit(SimDevice().truth()["kernels"] - before)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    torch.ones(2)
    assert len(prof.stop().kernels) == 1


def test_compiled_functions_run_eagerly() -> None:
    compiled = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    x = torch.ones(4)
    double = torch.compile(lambda x: x.sin() * 2, backend=backend)
    assert len(profiled(lambda: double(x)).kernels) == 2 and not compiled
    triple = torch.compile(lambda x: x.sin() * 3, backend=backend)
    assert torch.equal(triple(x), x.sin() * 3) and compiled  # as usual after the session


def test_inference_mode_is_seen_through() -> None:
    """There torch hands over whole composite operators (conv2d, layer_norm, ...): what they are made of is launched."""
    model, tokens = Mixed().eval(), torch.randint(10, (4, 6))
    image = torch.randn(4, 3, 8, 8)

    def script() -> None:
        with torch.inference_mode():
            results.append(model(image, tokens).softmax(-1))
            torch.hstack([image, image])[image.sum().item() > 0]

    results: list[torch.Tensor] = []
    script()
    inference = profiled(script)
    assert torch.equal(*results)
    assert inference.metadata["unmodelled_operators"] == {
        "_native_multi_head_attention": 1
    }  # of eval(), in one operator
    names = " ".join(inference.kernels["name"])
    for family in ("implicit_gemm", "bn_fw_inf", "layer_norm", "sgemm", "softmax", "LSTM"):
        assert family in names, family


def test_what_the_model_does_not_know_is_counted() -> None:
    x = torch.eye(4) * 3
    result = profiled(lambda: torch.linalg.solve(x, x))
    assert result.metadata["unmodelled_operators"] == {"_linalg_solve_ex": 1}
    assert len(result.kernels) == 1


def test_the_example_runs_under_the_command_line(tmp_path: Path) -> None:
    """In a process of its own: torch is imported after the session has started."""
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "-o", str(tmp_path / "run")]
    script = [str(ROOT / "examples" / "train_transformer.py"), "--steps", "2"]
    with_us = subprocess.run([*command, *script], capture_output=True, text=True, check=True)
    without = subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True)
    assert with_us.stdout == without.stdout
    assert "SIMULATED" in with_us.stderr
    result = cuptiprof.open(tmp_path / "run")
    assert {"fwd", "bwd", "opt"} <= {p.rsplit("/")[-1] for p in result.kernels["region"]}
    assert result.simulated


def test_a_region_takes_what_torch_has() -> None:
    x = torch.ones(3, 4)
    with (
        cuptiprof.profile(device="sim") as prof,
        cuptiprof.region("fwd", shape=x.shape, x=x, mean=x.mean(), dtype=x.dtype, on=x.device, model=nn.Linear(2, 2)),
    ):
        pass
    row = prof.result().regions.row(0)
    assert json.loads(row["metadata"]) == {
        "shape": [3, 4], "x": "Tensor[3, 4]", "mean": 1.0, "dtype": "torch.float32", "on": "cpu",
        "model": "Linear(in_features=2, out_features=2, bias=True)",
    }  # fmt: skip
