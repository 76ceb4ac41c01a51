"""Two processes over gloo, and what PyTorch's flight recorder says of the first: TORCH_FR_BUFFER_SIZE=100 python make.py"""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch._C._distributed_c10d as c10d
import torch.distributed as dist


def train(number: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29655", RANK=str(number), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    group = dist.new_group([0, 1], group_desc="tp")
    for _ in range(3):
        dist.all_reduce(torch.ones(4, 5))
    dist.broadcast(torch.ones(7), 0, group=group)
    if number == 0:
        Path("torch-2.13-gloo_0").write_bytes(c10d._dump_fr_trace())
        Path("torch-2.13-gloo_0.json").write_bytes(c10d._dump_fr_trace_json())
    dist.barrier()


if __name__ == "__main__":
    train(0 if os.fork() else 1)
