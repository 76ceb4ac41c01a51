"""Who holds the memory of a training step: by region, module and operator, and as torch's own snapshot.

    python examples/memory_by_module.py --device sim

Writes memory.pickle, which pytorch.org/memory_viz opens, and memory.memory.html, both curves over time.
"""

import argparse

import torch
from torch import nn

import cuptiprof
from cuptiprof.analysis.allocators.allocator_memory import memory_by_module, memory_timeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help='"cuda" (default), "sim", ...')
    args = parser.parse_args()
    where = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)).to(
        where
    )
    optimizer = torch.optim.Adam(net.parameters())
    with cuptiprof.profile(
        device=args.device, activities=["kernel", "runtime", "allocator"], sources=["operators", "modules", "lines"]
    ) as prof:
        for _ in range(3):
            with cuptiprof.region("forward"):
                loss = net(torch.randn(256, 512, device=where)).square().mean()
            with cuptiprof.region("backward"):
                loss.backward()
            with cuptiprof.region("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            prof.step()

    result = prof.result()
    print(result.report("allocator"))
    use = memory_by_module(result, 0)
    most = max((i for i in range(len(use)) if use.names[i].startswith("Sequential")), key=lambda i: use.at_peak[i])
    peak, _ = memory_timeline(result, 0).peak()
    print(f"{use.names[most]} held {use.at_peak[most] / peak:.0%} of the {peak / 2**20:.1f} MiB at the peak")
    result.export("memory.pickle", overwrite=True)
    result.export("memory.memory.html", overwrite=True)


if __name__ == "__main__":
    main()
