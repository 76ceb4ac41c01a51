"""What two ranks say to each other: which collectives, in which process group, how many bytes, from which region.

    python examples/collectives_gloo.py --device sim

Two processes on this machine, over gloo. With NCCL on GPUs the report has times and bandwidths as well.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import cuptiprof


def train(rank: int, device: str | None, folder: str) -> None:
    """One rank: gradients are summed by hand, then a metric is gathered."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(rank)
    net = torch.nn.Linear(256, 128)
    with cuptiprof.profile(device=device, activities=["kernel", "runtime", "collectives"]) as prof:
        for _ in range(3):
            loss = net(torch.randn(32, 256)).square().mean()
            loss.backward()
            with cuptiprof.region("gradients"):
                for parameter in net.parameters():
                    dist.all_reduce(parameter.grad)
            with cuptiprof.region("metrics"):
                dist.all_gather([torch.zeros(1) for _ in range(2)], loss.detach().reshape(1))
            net.zero_grad()
            prof.step()
    if rank == 0:
        result = prof.result()
        print(result.report("collectives"))
        for name, in_bytes, region in sorted(
            {(c["name"], c["in_bytes"], c["region"]) for c in result.collectives.rows()}, reverse=True
        ):
            print(f"{region}: {name} of {in_bytes:,} bytes")
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help='"cuda" (default), "sim", ...')
    args = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(args.device, str(Path(folder).resolve())), nprocs=2)


if __name__ == "__main__":
    sys.exit(main())
