"""Eager against compiled over sizes: a speed-up and a verdict at each, and in the geometric mean.

python examples/bench_compiled_over_sizes.py
CUPTIPROF_DEVICE=sim python examples/bench_compiled_over_sizes.py      (no GPU needed)
"""

import torch

import cuptiprof


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


print(
    cuptiprof.compare(
        {"eager": gelu, "compiled": torch.compile(gelu)},
        over={"n": [256, 512, 1024]},
        inputs=lambda n: torch.randn(n, n, device="cuda" if torch.cuda.is_available() else "cpu"),
        check=True,
    )
)
