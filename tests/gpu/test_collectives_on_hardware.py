"""NCCL's own records under DistributedDataParallel, against those that torch.profiler writes of the same program.

Ours comes first: released Kineto keeps CUPTI to the end of the process. One rank: NCCL has nothing to send, and launches no kernel.
"""

from __future__ import annotations

from typing import Any

import pytest

import cuptiprof
from cuptiprof.data.result import Result

pytest_plugins = ("hardware_fixtures",)

_SAID = ("name", "group", "group_description", "dtype", "in_bytes", "out_bytes", "group_size", "ranks")
_STEPS = 3


@pytest.fixture(scope="module")
def both(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Result, int]:
    """Ours, theirs, and how many parameters there are."""
    import torch.distributed as dist

    if not dist.is_nccl_available():
        pytest.skip("this torch has no NCCL")
    folder = tmp_path_factory.mktemp("nccl")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)).cuda()
        parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=0.1)

        def steps() -> None:
            for _ in range(_STEPS):
                parallel(torch.ones(16, 512, device="cuda")).sum().backward()
            torch.cuda.synchronize()

        steps()  # after the first step DDP makes other buckets
        with cuptiprof.profile(activities=["kernel", "runtime", "collectives"]) as prof:
            steps()
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as theirs:
            steps()
        theirs.export_chrome_trace(str(folder / "trace.json"))
    finally:
        dist.destroy_process_group()
    return prof.result(), cuptiprof.open(folder / "trace.json"), sum(p.numel() for p in model.parameters())


def test_each_bucket_is_a_row(both: Any) -> None:
    ours, _, parameters = both
    rows = list(ours.collectives.rows())
    assert {(row["name"], row["backend"], row["dtype"]) for row in rows} == {("allreduce", "nccl", "float32")}
    assert sum(row["in_bytes"] for row in rows) == _STEPS * 4 * parameters and not ours.losses
    assert (ours.collectives["end"] > ours.collectives["start"]).all()


def test_as_torch_profiler_says(both: Any) -> None:
    ours, theirs, _ = both
    said = [[tuple(row[c] for c in _SAID) for row in result.collectives.rows()] for result in (ours, theirs)]
    assert said[0] == said[1] and said[0]
    for result in (ours, theirs):  # each counts on; versions before 2.13 tell it in their traces only
        numbers = [row["sequence"] for row in result.collectives.rows() if row["sequence"]]
        assert numbers == sorted(set(numbers))
