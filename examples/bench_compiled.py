"""Eager against compiled: measured in turn, compared with each other, with a verdict.

python examples/bench_compiled.py
CUPTIPROF_DEVICE=sim python examples/bench_compiled.py      (no GPU needed; the stand-in compiles nothing, and says so)
"""

import torch

import cuptiprof


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


x = torch.randn(1024, 1024, device="cuda" if torch.cuda.is_available() else "cpu")
print(cuptiprof.compare({"eager": gelu, "compiled": torch.compile(gelu)}, x, check=True))
