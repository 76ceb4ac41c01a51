"""Train a small transformer to reverse sequences, with regions that say whose kernels are whose.

python examples/train_transformer.py
cuptiprof run examples/train_transformer.py                 # on a GPU
cuptiprof run --device sim examples/train_transformer.py    # without one
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

import cuptiprof


class Reverser(nn.Module):
    def __init__(self, vocabulary: int, size: int, length: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, size)
        self.position = nn.Parameter(torch.randn(length, size))
        self.transformer = nn.Transformer(
            size,
            nhead=4,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=4 * size,
            dropout=0.0,
            batch_first=True,
        )
        self.head = nn.Linear(size, vocabulary)

    def forward(self, source: torch.Tensor) -> torch.Tensor:
        x = self.embed(source) + self.position
        return self.head(self.transformer(x, self.position.expand_as(x)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vocabulary, length = 16, 8
    model = Reverser(vocabulary, 128, length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    for step in range(arguments.steps):
        source = torch.randint(vocabulary, (arguments.batch, length), device=device)
        with cuptiprof.region("fwd"):
            logits = model(source)
            loss = F.cross_entropy(logits.flatten(0, 1), source.flip(1).flatten())
        with cuptiprof.region("bwd"):
            loss.backward()
        with cuptiprof.region("opt"):
            optimizer.step()
            optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
