"""Bytes a second over sizes, and where the function lies under the roofs of the chip.

cuptiprof bench examples/bench_bandwidth.py --plot bandwidth.svg --x n --y bytes --roofline roofline.svg
cuptiprof bench examples/bench_bandwidth.py --device sim --filter 'n<=262144'      (no GPU needed)
"""

import torch

import cuptiprof


@cuptiprof.benchmark(
    params={"n": [2**16, 2**18, 2**20, 2**22]}, bytes=lambda n: 12 * n, flops=lambda n: n, dtype="float32", l2="cold"
)
def add(n):
    x, y = torch.randn(2, n, device="cuda" if torch.cuda.is_available() else "cpu")
    return lambda: x + y
