"""Modules of a program: whose forward runs on a thread, and whose made a node of autograd's graph.

By the program's own means: each module's `forward` is wrapped, and the nodes that its results lead to are marked when it returns, the inner
modules' first. No sequence numbers, and nothing of torch's profiler.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.hooks import BackwardHook

if TYPE_CHECKING:
    from torch_programs.truth import Truth

MODULE = "torch_programs.module"
UNKNOWN = "(unattributed)"
_PARENT = "parent_"
"""torch's own, where anomalies are looked for: the node that was evaluated when this one was made."""


def node_module(node: Any) -> str:
    """Path of the module whose forward made it; "": of none, as what adds up the gradient of a parameter, wherever it was made."""
    if _adds_up(node):
        return ""
    while MODULE not in node.metadata:
        node = node.metadata.get(_PARENT)
        if node is None:
            return ""
    return str(node.metadata[MODULE])


def _adds_up(node: Any) -> bool:
    return bool(node.name().endswith("AccumulateGrad"))


def follow_modules(model: nn.Module, truth: Truth, root: str, inside: bool = True) -> None:
    """Every call of the model's modules from now on. `root`: what paths begin with; `inside`: not the model alone."""
    for name, module in model.named_modules() if inside else [("", model)]:
        path = vars(module)["path"] = ".".join(filter(None, (root, name)))
        vars(module)["truth"] = truth
        vars(module)["forward"] = _followed(module.forward, truth, path)


def _followed(forward: Any, truth: Truth, path: str) -> Any:
    @functools.wraps(forward)
    def followed(*args: Any, **kwargs: Any) -> Any:
        mark((args, kwargs), truth.open_module()[0])  # what was made before is not this one's
        with truth.module(path):
            out = forward(*args, **kwargs)
            mark(out, path)
        return out

    return followed


def _marks(setup: Any) -> Any:
    """torch's nodes that call the hooks of a module's backward are the module's, which makes them around its forward."""

    @functools.wraps(setup)
    def marking(hook: Any, values: Any) -> Any:
        if "truth" in vars(hook.module):
            mark(values, hook.module.truth.open_module()[0])
        out = setup(hook, values)
        for value in out if isinstance(out, tuple) else (out,):
            if isinstance(value, torch.Tensor) and type(value.grad_fn).__name__ == "BackwardHookFunctionBackward":
                value.grad_fn.metadata.setdefault(MODULE, vars(hook.module).get("path", ""))
        return out

    return marking


BackwardHook.setup_input_hook = _marks(BackwardHook.setup_input_hook)  # type: ignore[method-assign]
BackwardHook.setup_output_hook = _marks(BackwardHook.setup_output_hook)  # type: ignore[method-assign]


def made_in_a_hook(tensor: torch.Tensor | None, path: str) -> torch.Tensor | None:
    """The node that made it is the hook's, wherever it came from."""
    if tensor is not None and tensor.grad_fn is not None:
        tensor.grad_fn.metadata[MODULE] = path
    return tensor


def mark(value: Any, path: str) -> None:
    """The nodes that lead here and that nobody has marked, but for those that the engine made before."""
    nodes: list[Any] = []
    _collect(value, nodes)
    evaluated = torch._C._current_autograd_node()
    while nodes:
        node = nodes.pop()
        if node is None or _adds_up(node) or MODULE in node.metadata:
            continue
        if node.metadata.get(_PARENT, evaluated) is not evaluated:
            continue
        node.metadata[MODULE] = path
        nodes += [n for n, _ in node.next_functions]


def _collect(value: Any, nodes: list[Any]) -> None:
    if isinstance(value, torch.Tensor):
        nodes.append(value.grad_fn)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _collect(v, nodes)
    elif isinstance(value, dict):
        for v in value.values():
            _collect(v, nodes)
