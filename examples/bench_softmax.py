"""Implementations of one function against each other over sizes: in turn, with a speed-up and a verdict at each size and in the mean.

cuptiprof bench examples/bench_softmax.py
cuptiprof bench examples/bench_softmax.py -p width=4096,8192 -p dtype=bfloat16 --json softmax.jsonl
cuptiprof bench softmax.jsonl --plot softmax.svg --x width
cuptiprof bench examples/bench_softmax.py -p width=64,128 --device sim      (no GPU needed)
"""

from __future__ import annotations

import torch

import cuptiprof
from cuptiprof.bench import Case


def by_hand(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def fused(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


IMPLEMENTATIONS = {"by hand": by_hand, "fused": fused}


@cuptiprof.benchmark(
    params={"width": [1024, 4096], "dtype": [torch.float32], "impl": list(IMPLEMENTATIONS)},
    compare="impl",
    bytes=lambda width, dtype: 2 * 1024 * width * dtype.itemsize,  # the input read once, the result written once
)
def softmax(width: int, dtype: torch.dtype, impl: str) -> Case:
    where = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(1024, width, dtype=dtype, device=where)
    return Case(lambda: IMPLEMENTATIONS[impl](x), check=fused(x))
