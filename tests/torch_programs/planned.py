"""Programs as planned: loops around models, on one thread or two."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from torch_programs.backend import NAME
from torch_programs.planned_models import WIDTH, planned
from torch_programs.plans import Plan, Training
from torch_programs.truth import Truth


def program_of(plan: Plan) -> Callable[[Truth], None]:
    """The program. What its own code raises comes out of it."""

    def program(truth: Truth) -> None:
        if any(map(_makes_nodes_in_backward, plan.trainings)):  # these shall know in which node they were made
            with torch.autograd.set_detect_anomaly(True, check_nan=False):
                trained(truth)
        else:
            trained(truth)

    def trained(truth: Truth) -> None:
        if len(plan.trainings) == 1:
            return _trained(plan.trainings[0], truth, 0)
        errors: list[BaseException] = []
        together = threading.Barrier(len(plan.trainings))

        def trainer(training: Training, number: int) -> None:
            try:
                together.wait()
                _trained(training, truth, number)
            except BaseException as e:
                errors.append(e)

        threads = [truth.thread(trainer, training, number) for number, training in enumerate(plan.trainings)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    return program


def _trained(training: Training, truth: Truth, number: int) -> None:
    model = planned(training.model, truth, f"Model{number}")
    parameters = list(model.parameters()) or [torch.nn.Parameter(torch.ones(1, device=NAME))]
    optimizer = getattr(torch.optim, training.optimizer)(parameters, lr=0.01, foreach=training.foreach)
    if training.after_accumulation:
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(_halve)

    def region(name: str) -> Any:
        return truth.region(f"{name} {number}") if name in training.regions else nullcontext()

    for _ in range(training.steps):
        with region("step"):
            for _ in range(training.micro_batches):
                x = torch.randn(3, WIDTH).to(NAME).requires_grad_()
                with region("forward"):
                    out = model(x)
                with ExitStack() as around:
                    around.enter_context(region("backward"))
                    around.enter_context(truth.backward())
                    _MODES[_mode(training)](_Asked(truth, out, x, parameters))
            with region("optimizer"):
                if training.clips:
                    torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=training.foreach)
                optimizer.step()
                optimizer.zero_grad(set_to_none=training.foreach)
            if training.evaluates:
                model.eval()
                with torch.no_grad():
                    model(x)
                model.train()
        if training.marks_steps and number == 0:
            truth.step()


def _mode(training: Training) -> str:
    """A checkpoint of the older kind can only be run by ``backward()`` as a whole."""
    is_reentrant = any("reentrant" in part.kind for part in training.model.all())
    return "backward" if is_reentrant and training.mode in ("grad", "penalty", "some inputs") else training.mode


def _makes_nodes_in_backward(training: Training) -> bool:
    return training.mode == "penalty" or any(part.kind == "gradient" for part in training.model.all())


def _halve(parameter: Any) -> None:
    parameter.grad.mul_(0.5)


@dataclass(frozen=True)
class _Asked:
    """Gradients of `out` are asked for."""

    truth: Truth
    out: Any
    x: Any
    parameters: Any

    @property
    def loss(self) -> Any:
        return self.out.pow(2).sum()


def _backward(asked: _Asked) -> None:
    asked.loss.backward()


def _retained(asked: _Asked) -> None:
    loss = asked.loss
    loss.backward(retain_graph=True)
    loss.backward()


def _grad(asked: _Asked) -> None:
    found = torch.autograd.grad(asked.loss, [asked.x, *asked.parameters], allow_unused=True)
    for parameter, gradient in zip(asked.parameters, found[1:], strict=True):
        parameter.grad = gradient


def _penalty(asked: _Asked) -> None:
    (gradient,) = torch.autograd.grad(asked.loss + asked.x.sum(), asked.x, create_graph=True)
    (gradient.pow(2).sum() + asked.out.sin().sum()).backward()


def _some_inputs(asked: _Asked) -> None:
    asked.loss.backward(inputs=[asked.x, asked.parameters[-1]])


def _parts_of_the_loss(asked: _Asked) -> None:
    torch.autograd.backward([asked.out[:1].sum(), asked.out[1:].pow(2).sum()])


def _another_thread(asked: _Asked) -> None:
    def run() -> None:
        with asked.truth.backward():
            asked.loss.backward()

    thread = asked.truth.thread(run)
    thread.start()
    thread.join()


_MODES: dict[str, Callable[[_Asked], None]] = {
    "backward": _backward,
    "retained": _retained,
    "grad": _grad,
    "penalty": _penalty,
    "some inputs": _some_inputs,
    "parts of the loss": _parts_of_the_loss,
    "another thread": _another_thread,
}
