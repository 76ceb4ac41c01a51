"""GPU time of a training step by module of the model, forward and backward, and the counters of one of them.

python examples/time_by_module.py                 # on a GPU
python examples/time_by_module.py --device sim    # without one
"""

import argparse

import torch
from torch import nn

import cuptiprof


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return x + self.mlp(x)


class Net(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=["cuda", "sim"])
    arguments = parser.parse_args()

    device = "cuda" if arguments.device == "cuda" else None
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.randn(8, 32, 64, device=device)

    def train() -> None:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

    with cuptiprof.profile(device=arguments.device, sources="modules") as prof:
        for _ in range(3):
            train()
    print(prof.result().report("modules"))

    chosen = cuptiprof.KernelFilter(modules="layers.1.mlp")
    with cuptiprof.profile(device=arguments.device, kernels=chosen, metrics=["achieved_occupancy"]) as prof:
        train()
    print(prof.result().metrics_table())


if __name__ == "__main__":
    main()
