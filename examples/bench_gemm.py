"""A matrix product in TFLOP/s, and how much of the chip's peak that is.

python examples/bench_gemm.py
CUPTIPROF_DEVICE=sim python examples/bench_gemm.py      (no GPU needed)
"""

import torch

import cuptiprof

a = torch.randn(512, 512, device="cuda" if torch.cuda.is_available() else "cpu", dtype=torch.bfloat16)
print(cuptiprof.bench(torch.matmul, a, a, flops=2 * 512**3, dtype=a.dtype))
