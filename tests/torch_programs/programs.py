"""The programs: each is given the truth that it keeps, and trains or serves a little on the device."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from torch_programs.backend import NAME
from torch_programs.models import (
    Cnn,
    Compiled,
    Gradient,
    Hooked,
    OwnFunction,
    Recurrent,
    Scaled,
    Transformer,
    Twice,
    mlp,
)
from torch_programs.nodes import follow_modules, mark
from torch_programs.truth import Truth

PROGRAMS: dict[str, Callable[[Truth], None]] = {}


def program(function: Callable[[Truth], None]) -> Callable[[Truth], None]:
    PROGRAMS[function.__name__] = function
    return function


def train(truth: Truth, model: nn.Module, inputs: Callable[[], tuple[Any, Any]], steps: int = 2, optimizer: Any = None,
          marks: bool = True, name: str = "step") -> None:  # fmt: skip
    """An ordinary loop: forward, loss, backward, optimizer, each in a region of its own."""
    follow_modules(model, truth, type(model).__name__)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x, y = inputs()
        with truth.region(name):
            with truth.region("forward"):
                loss = F.cross_entropy(model(x), y)
            with truth.region("backward"), truth.backward():
                loss.backward()
            with truth.region("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
        if marks:
            truth.step()


def vectors(count: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(count, 4).to(NAME), torch.randint(3, (count,)).to(NAME)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 1, 6, 6).to(NAME), torch.randint(3, (2,)).to(NAME)


def sequences() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 3, 4).to(NAME), torch.randint(3, (2,)).to(NAME)


class _Tokens(nn.Module):
    """A transformer whose logits are those of classes, as the loop wants them."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.body = Transformer(reentrant)

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.body(tokens).mean(1)


def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(16, (2, 3)).to(NAME), torch.randint(16, (2,)).to(NAME)


@program
def a_perceptron(truth: Truth) -> None:
    train(truth, mlp(), vectors)


@program
def a_cnn(truth: Truth) -> None:
    train(truth, Cnn().to(NAME), images)


@program
def a_transformer(truth: Truth) -> None:
    train(truth, _Tokens(None).to(NAME), tokens)


@program
def checkpoints_reentrant(truth: Truth) -> None:
    train(truth, _Tokens(True).to(NAME), tokens)


@program
def checkpoints(truth: Truth) -> None:
    train(truth, _Tokens(False).to(NAME), tokens)


@program
def an_lstm(truth: Truth) -> None:
    train(truth, Recurrent("LSTM").to(NAME), sequences)


@program
def a_gru(truth: Truth) -> None:
    train(truth, Recurrent("GRU").to(NAME), sequences)


@program
def an_rnn(truth: Truth) -> None:
    train(truth, Recurrent("RNN").to(NAME), sequences)


@program
def one_module_twice(truth: Truth) -> None:
    train(truth, Twice().to(NAME), vectors)


@program
def optimizers(truth: Truth) -> None:
    for foreach in (False, True):
        for make in (torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop):
            model = mlp(f"{make.__name__}{foreach}")
            train(truth, model, vectors, optimizer=make(model.parameters(), lr=0.1, foreach=foreach))


def train_compiled(truth: Truth, model: nn.Module, backend: str) -> None:
    """`model` as a whole; inside, nobody says which module runs."""
    torch._dynamo.reset()
    model = Compiled(model, backend)
    follow_modules(model, truth, "Compiled", inside=False)
    follow_modules(model.body, truth, "Compiled.body", inside=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        x, y = vectors()
        with truth.region("step"):
            loss = F.cross_entropy(model(x), y)
            with truth.backward():
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                model(x)
        truth.step()


@program
def compiled(truth: Truth) -> None:
    train_compiled(truth, mlp(), "eager")


@program
def compiled_ahead_of_time(truth: Truth) -> None:
    train_compiled(truth, mlp(), "aot_eager")


@program
def two_trainers(truth: Truth) -> None:
    """At once, in regions of their own; one of them marks the steps."""
    together = threading.Barrier(2)

    def batches() -> tuple[Any, Any]:
        together.wait()
        return vectors()

    def trainer(name: str, marks: bool) -> None:
        train(truth, mlp(f"Trained{int(marks)}", 16 if marks else 32), batches, steps=6, marks=marks, name=name)

    threads = [truth.thread(trainer, f"trainer {i}", i == 0) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@program
def a_server(truth: Truth) -> None:
    """Requests are tasks on one thread; some are answered by a pool's."""
    model = mlp().eval()
    follow_modules(model, truth, "Perceptron")
    pool = ThreadPoolExecutor(2)

    def answer(x: torch.Tensor) -> Any:
        with torch.no_grad():
            return model(x).softmax(-1).to("cpu")

    async def request(number: int) -> None:
        x, _ = vectors(number + 1)
        with truth.task_region(f"request {number}"):
            await asyncio.sleep(0)
            answer(x)
            await asyncio.sleep(0.001)
            region = truth.open_region()
            await asyncio.get_running_loop().run_in_executor(pool, truth.working_for(region, answer), x)
            answer(x)

    async def serve() -> None:
        await asyncio.gather(*(request(i) for i in range(6)))

    asyncio.run(serve())
    pool.shutdown()


@program
def a_loader(truth: Truth) -> None:
    data = TensorDataset(torch.randn(8, 4), torch.randint(3, (8,)))
    for workers in (0, 2):
        batches = iter(DataLoader(data, batch_size=4, num_workers=workers))
        model = mlp(f"Loaded{workers}")

        def batch(batches: Any = batches) -> tuple[Any, Any]:
            x, y = next(batches)
            return x.to(NAME), y.to(NAME)

        train(truth, model, batch)


@program
def accumulation(truth: Truth) -> None:
    model = mlp()
    follow_modules(model, truth, "Perceptron")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for part in range(3):
            x, y = vectors()
            with truth.region(f"part {part}"):
                loss = F.cross_entropy(model(x), y) / 3
                with truth.backward():
                    loss.backward()
        with truth.region("update"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        truth.step()


@program
def a_function_of_its_own(truth: Truth) -> None:
    model = OwnFunction().to(NAME)
    follow_modules(model, truth, "OwnFunction")
    x, _ = vectors()
    with truth.region("inside"):
        loss = model(x).sum()
    loss = Scaled.apply(loss, 3.0)
    with truth.backward():
        loss.backward()


class _Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        gradient + 1
        raise ValueError("the program's own")


@program
def an_exception_in_backward(truth: Truth) -> None:
    model = mlp()
    follow_modules(model, truth, "Perceptron")
    x, _ = vectors()
    with truth.region("step"):
        try:
            with truth.region("fails"), truth.backward():
                model(_Fails.apply(x.requires_grad_())).sum().backward()
        except ValueError as e:
            assert str(e) == "the program's own"
        with truth.region("goes on"), truth.backward():
            model(x).sum().backward()
    with truth.backward():  # in no region
        model(x).sum().backward()


@program
def two_backwards(truth: Truth) -> None:
    model = mlp()
    follow_modules(model, truth, "Perceptron")
    x, y = vectors()
    loss = F.cross_entropy(model(x), y)
    with truth.region("first"), truth.backward():
        loss.backward(retain_graph=True)
    truth.step()
    with truth.region("second"), truth.backward():
        loss.backward()
    truth.step()


@program
def gradients(truth: Truth) -> None:
    """torch.autograd.grad, and through it once more."""
    model = mlp()
    follow_modules(model, truth, "Perceptron")
    x, _ = vectors()
    x.requires_grad_()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):  # nodes know in which node they were made
        with truth.region("first"), truth.backward():
            (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        with truth.region("penalty"):
            penalty = ((gradient.norm(dim=1) - 1) ** 2).mean()
        with truth.region("second"), truth.backward():
            penalty.backward()


@program
def a_gradient_in_forward(truth: Truth) -> None:
    model = Gradient().to(NAME)
    follow_modules(model, truth, "Gradient")
    x, _ = vectors()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        with truth.region("forward"):
            loss = model(x, truth).pow(2).sum()
        with truth.region("backward"), truth.backward():
            loss.backward()


@program
def tensor_hooks(truth: Truth) -> None:
    model = Hooked(truth).to(NAME)
    follow_modules(model, truth, "Hooked")

    def halve(parameter: Any) -> None:
        parameter.grad.mul_(0.5)

    model.first.weight.register_post_accumulate_grad_hook(halve)
    x, _ = vectors()
    out = model(x.requires_grad_())
    with truth.region("backward"), truth.backward():
        out.sum().backward()


@program
def module_hooks(truth: Truth) -> None:
    model = mlp()
    follow_modules(model, truth, "Perceptron")

    def after(module: Any, args: Any, out: torch.Tensor) -> torch.Tensor:
        with truth.module("Perceptron.0"):
            mark(doubled := out * 2, "Perceptron.0")
            return doubled

    def before(module: Any, args: Any) -> Any:
        with truth.module("Perceptron.3"):
            mark(more := args[0] + 1, "Perceptron.3")
            return (more,)

    model[0].register_forward_hook(after)
    model[3].register_forward_pre_hook(before)
    model[0].register_full_backward_hook(
        lambda module, inward, outward: (inward[0],) if inward[0] is None else (inward[0] * 2,)
    )
    x, y = vectors()
    loss = F.cross_entropy(model(x), y)
    with truth.backward():
        loss.backward()


@program
def an_evaluation_in_a_step(truth: Truth) -> None:
    model, teacher = mlp(), mlp("Teacher").eval()
    follow_modules(model, truth, "Perceptron")
    follow_modules(teacher, truth, "Teacher")
    for _ in range(2):
        x, y = vectors()
        with truth.region("step"):
            out = model(x)
            with truth.region("teacher"), torch.no_grad():
                wanted = teacher(x).softmax(-1)
            with truth.region("inference"), torch.inference_mode():
                teacher(x)
            loss = F.cross_entropy(out, y) - (wanted * out.log_softmax(-1)).sum()
            with truth.backward():
                loss.backward()
        truth.step()


@program
def scopes_of_torch(truth: Truth) -> None:
    """record_function around forward, inside of modules and around backward."""
    model = mlp()
    follow_modules(model, truth, "Perceptron")
    x, y = vectors()
    with torch.profiler.record_function("whole / step"):
        with torch.profiler.record_function("forward"), truth.region("forward"):
            loss = F.cross_entropy(model(x), y)
        with torch.profiler.record_function("backward"), truth.backward():
            loss.backward()
