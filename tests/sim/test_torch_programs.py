"""Programs of PyTorch whose backward runs on the engine's own threads: each launch belongs where its program says."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest

PROGRAMS = [
    "a_perceptron", "a_cnn", "a_transformer", "checkpoints_reentrant", "checkpoints", "an_lstm", "a_gru", "an_rnn", "one_module_twice",
    "optimizers", "compiled", "compiled_ahead_of_time", "two_trainers", "a_server", "a_loader", "accumulation", "a_function_of_its_own", "an_exception_in_backward", "two_backwards", "gradients",
    "a_gradient_in_forward", "tensor_hooks", "module_hooks", "an_evaluation_in_a_step", "scopes_of_torch", "data_parallel",
    "writes_into_a_view", "a_scripted_function", "a_scripted_function_after_another", "a_checkpoint_up_to_a_module", "gradients_come_together_in_a_hook", "a_hook_makes_nodes",
]  # fmt: skip


def lines_of(*command: str) -> list[dict[str, Any]]:
    """What a process of its own says: a backend is registered for good."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(*options: str) -> dict[str, Any]:
    """A line of each program by its name."""
    return {line["program"]: line for line in lines_of("torch_programs", *options)}


SESSIONS = {
    "full": ("--source", "operators:full", "modules"),
    "launch beside torch.profiler": ("--beside", "--source", "operators:launch", "modules"),
}
"""Options of the program; torch.profiler tells whole paths of operators, without it their last parts are compared."""


@pytest.fixture(scope="module", params=SESSIONS)
def lines(request: pytest.FixtureRequest) -> dict[str, Any]:
    return run(*SESSIONS[request.param])


def test_every_program_ran(lines: dict[str, Any]) -> None:
    assert list(lines) == PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_launches_belong_where_the_program_says(program: str, lines: dict[str, Any]) -> None:
    line = lines[program]
    assert line["launches"] > 10 and line["wrong"] == [], line


def test_a_lie_is_found() -> None:
    lines = run("--lie", "--beside", "--source", "operators", "modules", "--", "a_perceptron", "checkpoints")
    assert [line["wrong"] for line in lines.values()] == [[], []]


@pytest.mark.parametrize(
    "examples", [pytest.param(25, id="25"), pytest.param(1_000, id="1000", marks=pytest.mark.nightly)]
)
def test_random_programs(examples: int) -> None:
    """`python -m torch_programs.random EXAMPLES SEED` in `tests` is one of them again, as small as it gets."""
    (line,) = lines_of("torch_programs.random", str(examples), str(random.randrange(1 << 31)))
    assert (
        line["wrong"] == "" and line["examples"] >= examples > 10 * line["refused"] and line["launches"] > 30 * examples
    ), line


def test_sessions_beside_threads_that_train() -> None:
    """Each knows whose launches are, and leaves nothing behind in torch."""
    (line,) = lines_of("torch_programs.stress", "40", "operators:launch", "modules")
    assert line["launches"] > 4000 and line["wrong"] == [], line
