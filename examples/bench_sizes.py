"""A function over sizes and dtypes; a point that fails does not end the others.

cuptiprof bench examples/bench_sizes.py
cuptiprof bench examples/bench_sizes.py --device sim --filter 'n<=512' --plot softmax.svg --x n      (no GPU needed)
"""

import torch

import cuptiprof


@cuptiprof.benchmark(params={"n": [256, 512, 1024], "dtype": [torch.float16, torch.bfloat16, torch.float32]})
def softmax(n, dtype):
    x = torch.randn(1024, n, dtype=dtype, device="cuda" if torch.cuda.is_available() else "cpu")
    return lambda: torch.softmax(x, -1)
