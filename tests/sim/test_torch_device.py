"""PyTorch scripts on the simulated GPU: unchanged results, believable launches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

import cuptiprof
from cuptiprof.sim.roofline import CHIPS, KERNEL_LATENCY_NS, duration_ns

ROOT = Path(__file__).resolve().parents[2]


def train(steps: int = 2) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x = torch.randn(32, 64)
        with cuptiprof.region("fwd"):
            loss = nn.functional.cross_entropy(model(x), torch.randint(8, (32,)))
        with cuptiprof.region("bwd"):
            loss.backward()
        with cuptiprof.region("opt"):
            optimizer.step()
            optimizer.zero_grad()
    return [p.detach().clone() for p in model.parameters()]


def test_results_are_bitwise_the_same() -> None:
    plain = train()
    state = torch.random.get_rng_state()
    with cuptiprof.profile(device="sim") as prof:
        simulated = train()
    assert all(torch.equal(a, b) for a, b in zip(plain, simulated, strict=True))
    assert torch.equal(state, torch.random.get_rng_state())
    r = prof.result()
    assert {"fwd", "bwd", "opt"} <= set(r.kernels["region"])
    gemms = [n for n in r.kernels["name"] if "gemm" in n]
    assert len(gemms) >= 2 * 5  # two linears forward, three products backward (the input needs no gradient), two steps
    assert not r.losses
    again = train()
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def test_after_the_session_nothing_is_launched() -> None:
    from cuptiprof.sim.device import SimDevice

    with cuptiprof.profile(device="sim"):
        torch.ones(3) + 1
    before = SimDevice().truth()["kernels"]
    torch.ones(3) + 1
    assert SimDevice().truth()["kernels"] == before


def test_views_launch_nothing_and_reading_a_value_waits() -> None:
    x = torch.randn(8, 8)
    with cuptiprof.profile(device="sim") as prof:
        _ = x.view(64).t().reshape(64)[3:5].detach()
    assert len(prof.result().kernels) == 0
    with cuptiprof.profile(device="sim") as prof:
        x.sum().item()
    r = prof.result()
    assert len(r.kernels) == 1 and list(r.memcpys["copy_kind"]) == [2]
    assert "cudaStreamSynchronize" in set(r.api_calls["name"])


def test_durations_follow_the_roofline() -> None:
    a = torch.randn(512, 512)
    with cuptiprof.profile(device="sim:A100") as prof:
        a @ a
    r = prof.result()
    flops, moved = 2 * 512**3, 3 * 4 * 512 * 512
    assert r.kernels["duration"].tolist() == [duration_ns(CHIPS["A100"], flops, moved, "float32")]
    assert r.kernels["duration"][0] > KERNEL_LATENCY_NS
    assert r.metadata["simulated_chip"] == "A100"


def test_the_example_runs_under_the_command_line(tmp_path: Path) -> None:
    """In a process of its own: torch is imported after the session has started."""
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "-o", str(tmp_path / "run")]
    script = [str(ROOT / "examples" / "train_transformer.py"), "--steps", "2"]
    with_us = subprocess.run([*command, *script], capture_output=True, text=True, check=True)
    without = subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True)
    assert with_us.stdout == without.stdout
    assert "SIMULATED" in with_us.stderr
    r = cuptiprof.open(tmp_path / "run")
    assert {"fwd", "bwd", "opt"} <= set(r.kernels["region"])
    assert r.simulated
