"""PyTorch's attention over the length of the sequence, with its FLOPs, so that the table says how far from the roof it is.

cuptiprof bench examples/bench_attention.py --filter 'dtype=torch.bfloat16' --json attention.jsonl
cuptiprof bench attention.jsonl --plot attention.svg --x tokens
cuptiprof bench examples/bench_attention.py::forward --device sim --filter 'tokens<=256'      (no GPU needed)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

import cuptiprof

BATCH, HEADS, WIDTH = 2, 8, 64
SWEEP = {"tokens": [128, 256, 512, 1024, 2048], "dtype": [torch.float16, torch.bfloat16]}


def attention_flops(tokens: int) -> float:
    """Two products of (tokens x WIDTH) by (WIDTH x tokens) a head: 4 * tokens^2 * WIDTH operations."""
    return 4.0 * BATCH * HEADS * tokens**2 * WIDTH


def attention_bytes(tokens: int, dtype: torch.dtype) -> int:
    """Query, key, value read once, the result written once."""
    return 4 * BATCH * HEADS * tokens * WIDTH * dtype.itemsize


def tensors(tokens: int, dtype: torch.dtype) -> list[torch.Tensor]:
    where = "cuda" if torch.cuda.is_available() else "cpu"
    return [torch.rand(BATCH, HEADS, tokens, WIDTH, dtype=dtype, device=where) for _ in range(3)]


@cuptiprof.benchmark(params=SWEEP, flops=attention_flops, bytes=attention_bytes, dtype=lambda dtype: dtype)
def forward(tokens: int, dtype: torch.dtype) -> Callable[[], object]:
    q, k, v = tensors(tokens, dtype)
    return lambda: F.scaled_dot_product_attention(q, k, v)


@cuptiprof.benchmark(params=SWEEP, l2="cold")
def forward_cold(tokens: int, dtype: torch.dtype) -> Iterator[Callable[[], object]]:
    """The form with a ``yield``: what follows it runs when the point has been measured."""
    q, k, v = tensors(tokens, dtype)
    with torch.no_grad():
        yield lambda: F.scaled_dot_product_attention(q, k, v)
