"""Run a program in a session."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.device.devices import SimulatedDevice
from torch_programs.oracle import Oracle
from torch_programs.truth import Launch, NotedSimulation, Truth


class OnlyOurs(SimulatedDevice):
    """The simulated device, without operators of the CPU on it."""

    def started(self) -> None:
        pass

    def stopping(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Ran:
    """A program and what came of it.

    Attributes:
        paths: operators around each launch, by its number; empty where torch's profiler did not run beside.
    """

    result: Result
    launches: list[Launch]
    paths: dict[int, tuple[str, ...]]


def run(simulation: NotedSimulation, program: Callable[[Truth], None], beside: bool, **session: Any) -> Ran:
    """One program in a session of its own; `beside`: torch's profiler runs, too."""
    truth, oracle = Truth(), Oracle()
    torch.manual_seed(1)
    with cuptiprof.profile(device=OnlyOurs(), **session) as prof:
        truth.session, simulation.truth = prof, truth
        try:
            with oracle.watching(truth) if beside else nullcontext():
                program(truth)
        finally:
            simulation.truth = None
    return Ran(prof.result(), truth.finished(), oracle.paths)
