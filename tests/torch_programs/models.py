"""Small models, of the shapes that programs are made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from torch_programs.backend import NAME
from torch_programs.nodes import UNKNOWN


def mlp(name: str = "Perceptron", wide: int = 8) -> nn.Module:
    """A perceptron of a class of its own name: a model's path begins with its class."""
    made = type(name, (nn.Sequential,), {})
    return made(nn.Linear(4, wide), nn.Tanh(), nn.Dropout(0.1), nn.Linear(wide, 3)).to(NAME)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.body = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.head = nn.Linear(4 * 9, 3)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.stem(x)
        x = F.max_pool2d(self.body(x) + x, 2)
        return self.head(x.flatten(1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> Any:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> Any:
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


class Transformer(nn.Module):
    """`reentrant`: how its layers are checkpointed; None: they are not."""

    def __init__(self, reentrant: bool | None = None, layers: int = 2) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.embed = nn.Embedding(16, 8)
        self.layers = nn.ModuleList(Block(8, 2) for _ in range(layers))
        self.head = nn.Linear(8, 16)

    def forward(self, tokens: torch.Tensor) -> Any:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x) if self.reentrant is None else checkpoint(layer, x, use_reentrant=self.reentrant)
        return self.head(x)


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(4, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


class Scaled(torch.autograd.Function):
    """A function of the program's own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor + 1

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return gradient * ctx.factor + x * 0, None


class OwnFunction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return Scaled.apply(self.inner(x), 0.5).sin()


class Gradient(nn.Module):
    """Calls the engine in its own forward, as models of physics do."""

    def __init__(self) -> None:
        super().__init__()
        self.potential = mlp()

    def forward(self, x: torch.Tensor, truth: Any) -> Any:
        x = x.detach().requires_grad_()
        energy = self.potential(x).sum()
        with truth.backward():
            (force,) = torch.autograd.grad(energy, x, create_graph=True)
        return force * 2


class Hooked(nn.Module):
    """Hooks on tensors and nodes, and a tensor with two uses, whose gradients come together.

    Hooks run before the node of which torch would say whose it is: nobody knows, as long as they run.
    """

    def __init__(self, truth: Any) -> None:
        super().__init__()
        self.truth = truth
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        def doubled(gradient: torch.Tensor) -> torch.Tensor:
            with self.truth.module(UNKNOWN):
                return gradient * 2

        def more(gradients: Any) -> Any:
            with self.truth.module(UNKNOWN):
                return tuple(g + 1 for g in gradients)

        hidden = self.first(x)
        hidden.register_hook(doubled)
        out = self.second(hidden.tanh() + hidden)
        out.grad_fn.register_prehook(more)
        return out


class Twice(nn.Module):
    """One module at two places of one forward."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.same(self.other(self.same(x).relu()))


class Compiled(nn.Module):
    """Has a compiled module; inside of that none is called."""

    def __init__(self, body: nn.Module, backend: str) -> None:
        super().__init__()
        self.body: Any = torch.compile(body, backend=backend)

    def forward(self, x: torch.Tensor) -> Any:
        return self.body(x + 1) * 2
