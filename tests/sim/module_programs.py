"""Modules that launch kernels which are called what PyTorch says of where they are."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from torch import nn

import cuptiprof
from cuptiprof.sim.sim_device import SimDevice


class Leaf(nn.Module):
    """Launches one kernel a call."""

    def __init__(self, kernel: str = "leaf") -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: Any = None) -> Any:
        SimDevice().launch(self.kernel)
        return x


class Block(nn.Module):
    """Launches before and after what it calls, which lies in containers that are not called."""

    def __init__(self, kernel: str, *parts: nn.Module) -> None:
        super().__init__()
        self.kernel = kernel
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Any = None) -> Any:
        SimDevice().launch(f"{self.kernel} before")
        for part in self.parts:
            x = part(x)
        SimDevice().launch(f"{self.kernel} after")
        return x


class Sequential(nn.Sequential):
    """One that needs no input."""

    def forward(self, x: Any = None) -> Any:
        return super().forward(x)


def modules_of(result: cuptiprof.Result) -> dict[str, set[str]]:
    """Kernel -> modules that it was launched from."""
    found: dict[str, set[str]] = {}
    for kernel, module in zip(result.kernels["name"], result.kernels["module"], strict=True):
        found.setdefault(str(kernel), set()).add(str(module))
    return found


def profiled(*calls: Any, **options: Any) -> cuptiprof.Result:
    """Each of them called, with modules."""
    with cuptiprof.profile(device="sim", **{"activities": ["kernel"], "sources": "modules", **options}) as prof:
        for call in calls:
            call()
    return prof.result()


def trees(depth: int = 3) -> st.SearchStrategy[Any]:
    """Shapes of models: a leaf (None), or a kind of container and what is in it. "again" is the first part once more."""
    if depth == 0:
        return st.none()
    inside = st.lists(trees(depth - 1), min_size=1, max_size=3)
    return st.one_of(st.none(), st.tuples(st.sampled_from(["block", "sequential", "dict", "again"]), inside))


def built(tree: Any, number: Any) -> nn.Module:
    """The model of a tree; `number` gives its kernels their numbers."""
    if tree is None:
        return Leaf(f"k{next(number)}")
    kind, inside = tree
    parts = [built(t, number) for t in inside]
    if kind == "again":
        parts.append(parts[0])
    if kind == "sequential":
        return Sequential(*parts)
    block = Block(f"k{next(number)}", *parts)
    if kind == "dict":
        block.parts = nn.ModuleDict({f"part{i}": part for i, part in enumerate(parts)})  # type: ignore[assignment]
        block.forward = lambda x=None: [part(x) for part in block.parts.values()]  # type: ignore
    return block


def said(model: nn.Module) -> dict[str, set[str]]:
    """Kernel -> path, as PyTorch says."""
    found: dict[str, set[str]] = {}
    for path, module in model.named_modules():
        place = ".".join([type(model).__name__, *([path] if path else [])])
        if isinstance(module, Leaf):
            found[module.kernel] = {place}
        elif isinstance(module, Block) and isinstance(module.parts, nn.ModuleList):
            found |= {f"{module.kernel} {when}": {place} for when in ("before", "after")}
    return found
