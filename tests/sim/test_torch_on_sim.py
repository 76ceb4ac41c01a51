"""PyTorch scripts that were written for a GPU, on the simulated one: "cuda" by name, torch.compile, and what torch imports late."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cuptiprof
from cuptiprof.data.result import Result

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="has CUDA of its own, which is left alone")

TRAINING = """
import torch
from torch import nn
torch.cuda.set_device(0)
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
device = torch.device("cuda:0")
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8, device=WHERE)).to(WHERE)
optimizer = torch.optim.AdamW(model.parameters())
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
for step in range(2):
    x = torch.randn(16, 32).pin_memory().to(DEVICE, non_blocking=True)
    y = torch.randint(8, (16,), device=WHERE)
    start.record()
    loss = nn.functional.cross_entropy(model(x), y.CUDA)
    loss.backward()
    end.record()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
assert torch.cuda.current_device() == 0 and "simulated" in torch.cuda.get_device_name()
assert 0 < start.elapsed_time(end) < 60_000 and end.query()
assert isinstance(start, torch.cuda.Event) and not isinstance(loss, torch.cuda.Event)
print(loss.item(), x.new_zeros(3, device=WHERE).sum().item(), torch.zeros(2).to(0).device)
"""


def run(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", *options, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)


def test_a_script_that_says_cuda(tmp_path: Path) -> None:
    """It runs unchanged, and computes what it does where it says cpu."""
    said = (
        TRAINING.replace("WHERE", '"cuda"').replace("DEVICE", "device").replace("y.CUDA", "y.cuda(non_blocking=True)")
    )
    done = run(tmp_path, said, "-o", "run", "-q")
    assert done.returncode == 0, done.stderr
    plain = TRAINING.replace("WHERE", '"cpu"').replace("DEVICE", '"cpu"').replace("y.CUDA", "y")
    on_cpu = run(tmp_path, plain, "-q")
    assert done.stdout == on_cpu.stdout and done.stdout.endswith(" 0.0 cpu\n"), on_cpu.stderr
    names = " ".join(cuptiprof.open(tmp_path / "run").kernels["name"])
    assert "gemm" in names and "multi_tensor_apply" in names


def test_its_profiler_window_is_seen(tmp_path: Path) -> None:
    script = """
import torch
x = torch.ones(8, device="cuda")
torch.cuda.cudart().cudaProfilerStart()
x @ x
torch.cuda.profiler.stop()
x + x
torch.cuda.profiler.start()
x * x
torch.cuda.cudart().cudaProfilerStop()
"""
    done = run(tmp_path, script, "--profile-from-start", "off", "-o", "run", "-q")
    assert done.returncode == 0, done.stderr
    assert len(cuptiprof.open(tmp_path / "run").kernels) == 2


@pytest.mark.parametrize("line", ["torch.cuda.Stream()", "torch.cuda.mem_get_info()"])
def test_what_is_not_there_gets_one_hint(line: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"import torch\n{line}\n")
    assert done.returncode == 1 and done.stderr.count("hint: on cuptiprof's simulated device") == 1, done.stderr
    assert "torch.cuda.is_available()" in done.stderr


def test_afterwards_every_name_is_what_it_was() -> None:
    import torch._dynamo  # puts names of its own into torch

    before = {
        (owner, name): getattr(owner, name)
        for owner in (torch, torch.Tensor, torch.cuda, torch.cuda.profiler)
        for name in dir(owner)
        if not name.startswith("__")
    }
    with cuptiprof.profile(device="sim"):
        assert (
            torch.ones(2, device="cuda").device.type == "cpu" and torch.ones(2).to("cuda:1").cuda().device.type == "cpu"
        )
        assert torch.ones(2, device="meta").to("meta").device.type == "meta"  # others are as they were
    assert [key for key, value in before.items() if getattr(key[0], key[1], None) is not value] == []
    with pytest.raises(AssertionError, match="not compiled with CUDA") as plain:
        torch.ones(2, device="cuda")
    assert "hint" not in str(plain.value)


def test_the_first_operator_imports_nothing(tmp_path: Path) -> None:
    """800 modules, seconds: they were the first region's host time."""
    script = """
import sys, torch, cuptiprof
with cuptiprof.region("first"):
    before = set(sys.modules)
    (torch.ones(2) + 1).sum().item()
    print(len(set(sys.modules) - before))
"""
    done = run(tmp_path, script, "-q")
    assert done.stdout == "0\n", done.stdout + done.stderr


def profiled(function: object) -> Result:
    with cuptiprof.profile(device="sim") as prof:
        function()  # type: ignore[operator]
    return prof.result()


def test_torch_compile_says_that_it_did_not() -> None:
    x = torch.ones(64)
    written = lambda: x.sin() * 2  # noqa: E731
    compiled = torch.compile(written, backend="eager")
    result = profiled(compiled)
    assert len(result.kernels) == 2 and "compiles nothing on the simulated device" in result.metadata["note"]
    assert any("compiles nothing" in line for line in result.summary().header)
    assert "note" not in profiled(written).metadata
    both = cuptiprof.compare({"eager": written, "compiled": compiled}, device="sim", max_seconds=0.2)
    eager, other = both.measurements
    assert not any("compiles nothing" in n for n in eager.notes) and any("compiles nothing" in n for n in other.notes)
    assert "note: compiled: torch.compile compiles nothing" in str(both)
