"""The work that both tools see: python -m benchmarks.agreement_work runs it once, for ncu to wrap. Imports nothing of
cuptiprof. The same launches in the same order each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def make_step() -> tuple[Any, Callable[[], None]]:
    """(torch, a step): a small transformer step and some plain kernels; ends when the GPU is done."""
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, device="cuda")
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    x = torch.randn(8, 128, 256, device="cuda")
    big = torch.ones(1 << 24, device="cuda")
    a = torch.randn(1024, 1024, device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        layer(x).square().mean().backward()
        optimizer.step()
        (big * 2.0).sum()
        torch.relu_(a @ a)
        torch.cuda.synchronize()

    return torch, step


def main() -> None:
    torch, step = make_step()
    for _ in range(3):
        step()
    torch.cuda.cudart().cudaProfilerStart()
    step()
    torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    main()
