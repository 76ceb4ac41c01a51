"""Programs of torch.distributed, in one process: a process group of torch's own that moves no data."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from torch_programs.backend import NAME
from torch_programs.models import mlp
from torch_programs.programs import program, train, vectors
from torch_programs.truth import Truth


def _reduced(state: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A bucket's gradients after an all-reduce among processes that do not exist; the group's own future holds no tensor."""
    dist.all_reduce(bucket.buffer())
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


@program
def data_parallel(truth: Truth) -> None:
    """DistributedDataParallel: C++ copies gradients into buckets, has them reduced by a hook, and copies them back."""
    dist.init_process_group(f"cpu:fake,{NAME}:fake", store=FakeStore(), rank=0, world_size=2)
    try:
        model = DistributedDataParallel(mlp().to(NAME), bucket_cap_mb=0.0001)
        model.register_comm_hook(None, _reduced)
        train(truth, model, vectors, steps=3)
    finally:
        dist.destroy_process_group()
