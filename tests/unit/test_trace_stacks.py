"""Python stacks of imported traces: slices of functions, and texts on operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cuptiprof


def span(cat: str, name: str, ts: int, dur: int, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def opened(tmp_path: Path, events: list[dict[str, Any]]) -> cuptiprof.Result:
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    return cuptiprof.open(tmp_path / "t.json")


def places(result: cuptiprof.Result, stack: int) -> list[tuple[str, int, str, bool]]:
    return [(f.file, f.line, f.function, f.is_user) for f in result.python_stacks().frames(stack)]


MAIN = ("train.py", 7, "main", True)
LINEAR = ("torch/nn/modules/linear.py", 120, "forward", False)


def test_functions_as_slices(tmp_path: Path) -> None:
    events = [
        span("python_function", "train.py(7): main", 0, 100),
        *(
            e
            for i in range(2)  # twice the same stack
            for e in (
                span("python_function", "torch/nn/modules/linear.py(120): forward", 10 + 20 * i, 15),
                span("python_function", "<built-in function linear>", 11 + 20 * i, 10),
                span("cpu_op", "aten::linear", 12 + 20 * i, 5),
                span("cuda_runtime", "cudaLaunchKernel", 13 + 20 * i, 1, correlation=i + 1),
                span("kernel", "gemm", 50 + i, 1, 0, correlation=i + 1),
            )
        ),
        span("cpu_op", "aten::add", 60, 5),
        span("cpu_op", "elsewhere", 60, 5, tid=2),
    ]
    result = opened(tmp_path, events)
    stacks = result.kernels["stack"].tolist()
    assert stacks[0] == stacks[1] and len(result.stacks) == 3 and not result.losses
    assert places(result, stacks[0]) == [("", 0, "<built-in function linear>", False), LINEAR, MAIN]
    assert result.kernels["line"].tolist() == ["train.py:7 main"] * 2
    assert [places(result, s) for s in result.operators["stack"].tolist()[2:]] == [[MAIN], []]


def test_stacks_written_on_operators(tmp_path: Path) -> None:
    text = "torch/nn/modules/linear.py(120): forward;train.py(7): main"
    events = [
        span("cpu_op", "aten::linear", 0, 50, **{"Call stack": text, "External id": 1}),
        span("cpu_op", "aten::addmm", 1, 40, **{"Call stack": text, "External id": 2}),
        span("cpu_op", "aten::add", 60, 5, **{"Call stack": "", "External id": 3}),
        span("cpu_op", "aten::mul", 70, 5, **{"Call stack": ["odd"], "External id": 4}),
        span("cuda_runtime", "cudaLaunchKernel", 2, 1, correlation=9),
        span("kernel", "gemm", 50, 1, 0, correlation=9),
    ]
    result = opened(tmp_path, events)
    assert places(result, int(result.kernels["stack"][0])) == [LINEAR, MAIN]
    assert result.operators["line"].tolist() == ["train.py:7 main", "train.py:7 main", "", ""]
    assert "train.py" in str(result.report("lines"))


def test_recursion_without_an_end(tmp_path: Path) -> None:
    """Stacks have at most 1,000 frames."""
    events = [span("python_function", "r.py(1): again", i, 20_000 - 2 * i) for i in range(5000)]
    result = opened(tmp_path, [*events, span("cpu_op", "aten::add", 5000, 1)])
    assert len(places(result, int(result.operators["stack"][0]))) in (1000, 1001)
