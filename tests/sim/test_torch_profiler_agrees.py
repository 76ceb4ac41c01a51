"""One run under both: torch.profiler's operators, calls, shapes and operations are ours, whichever of the two began first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from torch import nn

from cuptiprof.analysis.trees.host_tree import BACKWARD_SCOPE
from cuptiprof.data.result import Result
from cuptiprof.report.views.key_averages import KeyAverages
from cuptiprof.torch_profiler import ProfilerActivity, profile


def perceptron() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        with torch.profiler.record_function("forward"):
            loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def convolutions() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 3, stride=2)
    )
    model(torch.randn(2, 3, 8, 8)).sum().backward()


def transformer() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    torch.utils.checkpoint.checkpoint(
        layer, torch.randn(2, 4, 16, requires_grad=True), use_reentrant=False
    ).sum().backward()


def recurrent() -> None:
    outputs, _ = nn.LSTM(4, 8, num_layers=2)(torch.randn(5, 2, 4))
    outputs.sum().backward()


def lists_and_scalars() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    torch.cat([x, x * 2, x + 1.5]).to(torch.float64).sum(0, keepdim=True).to("cpu", torch.float32).item  # noqa: B018
    torch.stack([x, x]).split(1)


def in_window(rows: Iterable[tuple[int, str, int]]) -> Counter[tuple[str, int]]:
    """Names with shapes, and sequence numbers, of what began inside of the window."""
    by_start = sorted(rows)
    first = next(i for i, (_, name, _) in enumerate(by_start) if name.startswith("window "))
    return Counter((name, number) for _, name, number in by_start[first:])


def number(name: str, sequence: int) -> int:
    """The engine's frame around a node has the node's number in Kineto's files, and none in operators."""
    return -1 if name.startswith("autograd::engine::") else sequence


def as_torch_counts(result: Result) -> KeyAverages:
    """What the simulated device puts between an operator and what runs it counts, as torch.profiler counts it."""
    return Result(result.tables, {**result.metadata, "simulated": False}).key_averages(group_by_input_shape=True)


PROGRAMS = [perceptron, convolutions, transformer, recurrent, lists_and_scalars]


@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_names_calls_shapes_and_sequence_numbers(program: Callable[[], None], ours_first: bool) -> None:
    torch.manual_seed(0)
    options: dict[str, Any] = {"activities": [ProfilerActivity.CPU], "record_shapes": True, "with_flops": True}
    ours, theirs = profile(device="sim", **options), torch.profiler.profile(**options)
    with ExitStack() as both:
        for session in (ours, theirs) if ours_first else (theirs, ours):
            both.enter_context(session)
        with torch.profiler.record_function("window"):
            program()
    operators = ours.result().operators
    mine = in_window(
        (row["start"], f"{row['name']} {json.loads(row['shapes'] or '[]')}", number(row["name"], row["sequence"] - 1))
        for row in operators.rows()
    )
    events = [e for e in theirs.profiler.kineto_results.events() if e.activity_type() in ("cpu_op", "user_annotation")]
    assert mine == in_window(
        (e.start_ns(), f"{e.name()} {e.structured_input_shapes()}", number(e.name(), e.sequence_nr())) for e in events
    )
    if not ours_first:  # else what torch.profiler itself does while it starts is among ours
        table, their_table = (
            {
                (row.key, str(row.input_shapes)): (row.count, row.scope, row.is_user_annotation, row.flops)
                for row in averages
                if row.key != "aten::conv2d"  # torch knows the size of its result also without a backward
            }
            for averages in (as_torch_counts(ours.result()), theirs.key_averages(group_by_input_shape=True))
        )
        assert table == their_table
    nodes = operators.where(operators["scope"] == BACKWARD_SCOPE)
    names = dict(zip(operators["instance"].tolist(), operators["name"].tolist(), strict=True))
    for name, forward in zip(nodes["name"].tolist(), nodes["forward"].tolist(), strict=True):
        if name == "torch::autograd::AccumulateGrad":
            assert forward == 0
        elif program is not lists_and_scalars and name in ("AddmmBackward0", "ConvolutionBackward0", "ReluBackward0"):
            assert (
                names[forward].removeprefix("aten::").rstrip("_") in name.lower().replace("backward0", "") + "clamp_min"
            )


def test_host_times_are_of_the_same_size() -> None:
    ours = profile(device="sim", activities=[ProfilerActivity.CPU])
    theirs = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with ours, theirs:
        for _ in range(20):
            torch.randn(256, 256) @ torch.randn(256, 256)
    mine, their = (
        {row.key: row for row in averages} for averages in (as_torch_counts(ours.result()), theirs.key_averages())
    )
    # Each sees the other's clock readings, and not its own.
    for name in ("aten::mm", "aten::randn"):
        assert mine[name].count == their[name].count
        assert mine[name].cpu_time_total == pytest.approx(their[name].cpu_time_total, rel=0.25)


def test_handler_schedule_and_steps_as_torch_counts_them() -> None:
    def steps(module: Any, **options: Any) -> list[list[tuple[str, int]]]:
        seen: list[list[tuple[str, int]]] = []

        def handler(prof: Any) -> None:
            rows = {row.key: row.count for row in prof.key_averages()}
            seen.append([(name, rows.get(name, 0)) for name in ("ProfilerStep*", "aten::mm")])

        schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
        with module.profile(
            activities=[ProfilerActivity.CPU], schedule=schedule, on_trace_ready=handler, **options
        ) as prof:
            for _ in range(9):
                torch.ones(2, 2) @ torch.ones(2, 2)
                prof.step()
        return seen

    import cuptiprof.torch_profiler

    assert (
        steps(cuptiprof.torch_profiler, device="sim")
        == steps(torch.profiler)
        == [[("ProfilerStep*", 2), ("aten::mm", 2)]] * 2
    )
