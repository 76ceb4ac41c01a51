"""Models as planned. Each takes and gives rows of four numbers, so that any fits into any other."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from torch_programs.backend import NAME
from torch_programs.models import Scaled
from torch_programs.nodes import UNKNOWN, follow_modules, made_in_a_hook, mark
from torch_programs.plans import CONTAINERS, Part
from torch_programs.truth import Truth

WIDTH = 4


def planned(plan: Part, truth: Truth, name: str) -> nn.Module:
    """The model, a class of the name `name`, whose calls the truth follows."""
    made = type(name, (_Several,), {})(plan, _Making(truth))
    model: nn.Module = made.to(NAME)
    follow_modules(model, truth, name)
    truth.kept.append(model)
    return model


class _Making:
    """What one model is made with: the truth, and the leaves that are there already."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.leaves: list[nn.Module] = []
        self.in_checkpoints = 0

    def part(self, plan: Part) -> nn.Module:
        if plan.kind in CONTAINERS:
            return _Several(plan, self)
        if plan.inner:
            return _One(plan, self)
        if plan.kind == "same" and self.leaves:
            return self.leaves[plan.which % len(self.leaves)]
        self.leaves.append(_LEAVES.get(plan.kind, _LEAVES["Linear"])())
        return self.leaves[-1]


class _ReluInPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return (x * 1).relu_()


class _OwnWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> Any:
        return F.linear(x.sin(), self.weight.t() * 0.5)


_LEAVES: dict[str, Callable[[], nn.Module]] = {
    "Linear": lambda: nn.Linear(WIDTH, WIDTH),
    "Tanh": nn.Tanh,
    "Dropout": lambda: nn.Dropout(0.1),
    "LayerNorm": lambda: nn.LayerNorm(WIDTH),
    "GELU": nn.GELU,
    "ReLU in place": _ReluInPlace,
    "own weight": _OwnWeight,
}


class _Several(nn.Module):
    """A container that is called as a whole, or whose modules are called one by one."""

    path: str

    def __init__(self, plan: Part, making: _Making) -> None:
        super().__init__()
        modules = [making.part(part) for part in plan.inner]
        self.body: Any
        if plan.kind == "Sequential":
            self.body = nn.Sequential(*modules)
        elif plan.kind == "ModuleList":
            self.body = nn.ModuleList(modules)
        else:
            self.body = nn.ModuleDict({f"m{i}": module for i, module in enumerate(modules)})

    def forward(self, x: torch.Tensor) -> Any:
        if isinstance(self.body, nn.Sequential):
            return self.body(x)
        for module in self.body.values() if isinstance(self.body, nn.ModuleDict) else self.body:
            x = module(x)
        return x * 0.5


class _One(nn.Module):
    """Does with the module in it what the plan says."""

    path: str

    def __init__(self, plan: Part, making: _Making) -> None:
        super().__init__()
        self.kind, self.truth = plan.kind, making.truth
        # A checkpoint takes another number of saved tensors for an error, which in backward ends the process: torch's guards of a backend
        # in Python throw in their destructors.
        self.may_be_scripted = not making.in_checkpoints
        making.in_checkpoints += "checkpoint" in plan.kind
        self.inner = making.part(plan.inner[0])
        making.in_checkpoints -= "checkpoint" in plan.kind
        if plan.kind == "hooks of forward":
            self.inner.register_forward_pre_hook(self._before)
            self.inner.register_forward_hook(self._after)
        elif plan.kind == "hook of backward":
            self.inner.register_full_backward_hook(self._in_backward)

    def forward(self, x: torch.Tensor) -> Any:
        return getattr(self, "_" + self.kind.replace(" ", "_"))(x)

    def _residual(self, x: torch.Tensor) -> Any:
        return x + self.inner(x)

    def _twice(self, x: torch.Tensor) -> Any:
        return self.inner(self.inner(x).cos())

    def _no_grad(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            y = self.inner(x)
        return x + y

    def _inference(self, x: torch.Tensor) -> Any:
        with torch.inference_mode():
            y = self.inner(x)
        return x + y

    def _detach(self, x: torch.Tensor) -> Any:
        return x * 2 + self.inner(x.detach())

    def _in_place(self, x: torch.Tensor) -> Any:
        return (self.inner(x) * 1).add_(x).mul_(0.5)

    def _view_in_place(self, x: torch.Tensor) -> Any:
        y = self.inner(x) * 1
        y[:, :2].mul_(2)
        return y.sin()

    def _checkpoint(self, x: torch.Tensor) -> Any:
        return checkpoint(self.inner, x, use_reentrant=False)

    def _checkpoint_reentrant(self, x: torch.Tensor) -> Any:
        return checkpoint(self.inner, x, use_reentrant=True)

    def _checkpoint_of_a_function(self, x: torch.Tensor) -> Any:
        return checkpoint(functools.partial(self._function, asked_for_by_a_node=True), x, use_reentrant=False)

    def _checkpoint_of_a_function_reentrant(self, x: torch.Tensor) -> Any:
        return checkpoint(self._function, x, use_reentrant=True)

    def _function(self, x: torch.Tensor, asked_for_by_a_node: bool = False) -> Any:
        with self.truth.module(self._path_of_function(asked_for_by_a_node)):
            y = self.inner(x.sin()).cos()
            mark(y, self.path)
            return y

    def _checkpoint_up_to_a_module(self, x: torch.Tensor) -> Any:
        def function(x: torch.Tensor) -> Any:
            with self.truth.module(self._path_of_function(True)):
                return self.inner(x.sin())

        return checkpoint(function, x, use_reentrant=False)

    def _path_of_function(self, asked_for_by_a_node: bool) -> str:
        """Run again by whatever node of backward comes first, it is of no module that is known."""
        again = asked_for_by_a_node and self.truth.open_module() != (self.path, False)
        return UNKNOWN if again else self.path

    def _made_in_forward(self, x: torch.Tensor) -> Any:
        x = self.inner(x)
        mark(x, self.path)
        name = f"Softmax{self.path.partition('.')[0]}"  # of two of one class that live at once the second has a number
        softmax = type(name, (nn.Softmax,), {})(dim=-1)
        with self.truth.module(name):
            mark(y := softmax(x), name)
        return y

    def _hooks_of_forward(self, x: torch.Tensor) -> Any:
        return self.inner(x) * 2

    def _before(self, module: Any, args: Any) -> Any:
        mark(args, self.truth.open_module()[0])
        with self.truth.module(module.path):
            mark(more := args[0] + 1, module.path)
            return (more,)

    def _after(self, module: Any, args: Any, out: torch.Tensor) -> Any:
        with self.truth.module(module.path):
            mark(doubled := out * 2, module.path)
            return doubled

    def _hook_of_backward(self, x: torch.Tensor) -> Any:
        return self.inner(x) * 2

    def _in_backward(self, module: Any, inward: Any, outward: Any) -> Any:
        with self.truth.module(module.path):
            doubled = tuple(None if gradient is None else gradient * 2 for gradient in inward)
        for gradient in doubled:
            made_in_a_hook(gradient, module.path)
        return doubled

    def _own_function(self, x: torch.Tensor) -> Any:
        return Scaled.apply(self.inner(x), 0.5)

    def _tensor_hook(self, x: torch.Tensor) -> Any:
        def doubled(gradient: torch.Tensor) -> torch.Tensor:
            with self.truth.module(UNKNOWN):
                return made_in_a_hook(gradient * 2, UNKNOWN)

        y = self.inner(x)
        if y.requires_grad:
            y.register_hook(doubled)
        return y.sin()

    def _region(self, x: torch.Tensor) -> Any:
        with self.truth.region("of the model"):
            return self.inner(x).sin()

    def _record_function(self, x: torch.Tensor) -> Any:
        with torch.profiler.record_function("of / the model"):
            return self.inner(x).sin()

    def _gradient(self, x: torch.Tensor) -> Any:
        if torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
            return self.inner(x)
        x = x.detach().requires_grad_()
        energy = self.inner(x).sin().sum() + x.sum()
        mark(energy, self.path)
        with self.truth.backward():
            (force,) = torch.autograd.grad(energy, x, create_graph=True)
        return force * 2

    def _foreach(self, x: torch.Tensor) -> Any:
        first, second = torch._foreach_mul([x, self.inner(x)], 2.0)
        return first.sin() + second.cos()

    def _fails(self, x: torch.Tensor) -> Any:
        try:
            with torch.profiler.record_function("fails"):
                self.inner(x) @ x.new_zeros(3, 3)
        except RuntimeError:
            return x.sin()
        raise AssertionError

    def _through_the_host(self, x: torch.Tensor) -> Any:
        return self.inner(x.cpu().sin().to(NAME)).sin()

    def _saved_on_the_host(self, x: torch.Tensor) -> Any:
        with torch.autograd.graph.save_on_cpu():
            return self.inner(x).sin()

    def _thread(self, x: torch.Tensor) -> Any:
        out: list[Any] = []
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

        def run() -> None:
            with torch.inference_mode(modes[1]), torch.set_grad_enabled(modes[0]):
                out.append(self.inner(x))

        thread: threading.Thread = self.truth.thread(run)
        thread.start()
        thread.join()
        return out[0].sin()

    def _halves(self, x: torch.Tensor) -> Any:
        return torch.cat(self.inner(x).chunk(2, -1)[::-1], -1)

    def _scripted_function(self, x: torch.Tensor) -> Any:
        return (_scripted if self.may_be_scripted else _not_scripted)(self.inner(x))


def _not_scripted(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin()


_scripted = torch.jit.script(_not_scripted)
