"""One function: its time on the GPU with an interval, its kernels, what disturbed the run.

python examples/bench_function.py
CUPTIPROF_DEVICE=sim python examples/bench_function.py      (no GPU needed)
"""

import torch

import cuptiprof

x = torch.randn(1024, 1024, device="cuda" if torch.cuda.is_available() else "cpu")
print(cuptiprof.bench(torch.softmax, x, -1))
