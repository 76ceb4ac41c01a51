"""The table of lines, flame graphs and call stacks of traces, from hand-made runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from report_results import HOSTILE, make_result

from cuptiprof.data.result import Result
from cuptiprof.text.line_patterns import LinePattern

SOURCE = """import torch

def step(x):
    y = x @ x
    for _ in range(2):
        y = act(y)

    return y

def act(y):
    return y.relu()
"""


def _run(file: str, *, hostile: bool = False) -> Result:
    """main:9 -> step:4 (gemm), step:6 -> act:11 (relu, twice, through a package), and a copy that no Python launched."""
    act = HOSTILE if hostile else "act"
    frames: list[dict[str, Any]] = [
        {
            "id": 1,
            "parent": 0,
            "file": "/app/main.py",
            "function": "<module>",
            "line": 9,
            "first_line": 1,
            "is_user": 1,
        },
        {"id": 2, "parent": 1, "file": file, "function": "step", "line": 4, "first_line": 3, "is_user": 1},
        {"id": 3, "parent": 1, "file": file, "function": "step", "line": 6, "first_line": 3, "is_user": 1},
        {"id": 4, "parent": 3, "file": file, "function": act, "line": 11, "first_line": 10, "is_user": 1},
        {
            "id": 5,
            "parent": 4,
            "file": "/site-packages/t.py",
            "function": "relu",
            "line": 1,
            "first_line": 1,
            "is_user": 0,
        },
    ]
    kernel = {"stream": 7, "context": 1}
    return make_result(
        {
            "kernels": [
                {"name": "gemm", "start": 100, "end": 400, "correlation_id": 1, "stack": 2, **kernel},
                {"name": "relu", "start": 400, "end": 450, "correlation_id": 2, "stack": 5, **kernel},
                {"name": "relu", "start": 450, "end": 500, "correlation_id": 3, "stack": 5, **kernel},
            ],
            "memcpys": [{"start": 500, "end": 600, "bytes": 8, "correlation_id": 4, "copy_kind": 1, **kernel}],
            "api_calls": [
                {"name": "cuLaunchKernel", "start": 10, "end": 15, "correlation_id": 1},
                {"name": "cudaLaunchKernel", "start": 9, "end": 16, "correlation_id": 1},
                {"name": "cudaLaunchKernel", "start": 20, "end": 24, "correlation_id": 2},
            ],
            "stacks": frames,
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


def test_a_function_is_shown_line_by_line(source: str) -> None:
    rows = _run(source).report("lines", lines="step").rows
    assert [row["line"] for row in rows] == [3, 4, 5, 6, 7, 8]
    assert [row["contents"] for row in rows] == SOURCE.splitlines()[2:8]
    assert [row["hits"] for row in rows] == [None, 1, None, 2, None, None]
    assert [row["gpu_ns"] for row in rows] == [None, 300, None, 100, None, None]
    assert [row["per_hit_ns"] for row in rows] == [None, 300, None, 50, None, None]
    assert [row["percent"] for row in rows] == [None, 75.0, None, 25.0, None, None]
    assert [row["call_ns"] for row in rows] == [None, 7, None, 4, None, None]


def test_without_a_choice_functions_that_launch_come_by_their_own_time(source: str) -> None:
    report = _run(source).report("lines")
    assert list(dict.fromkeys(row["function"] for row in report.rows)) == ["step", "act"]
    text = str(report)
    assert f"step in {source}:3: 400ns, 80.00% of GPU time" in text
    assert "    y = x @ x" in text
    assert "main.py" not in text


def test_what_is_hit_is_shown_where_the_source_is_not(source: str) -> None:
    rows = _run("/nowhere/train.py").report("lines", lines="train.py").rows
    assert [(row["function"], row["line"], row["contents"]) for row in rows] == [
        ("step", 4, ""),
        ("step", 6, ""),
        ("act", 11, ""),
    ]


@pytest.mark.parametrize("name", ["fifo", "folder", "huge", "binary"])
def test_what_is_no_source_is_not_read(tmp_path: Path, name: str) -> None:
    import os

    path = tmp_path / name
    if name == "fifo":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    elif name == "huge":
        with path.open("wb") as f:
            f.truncate(1 << 30)
    else:
        path.write_bytes(b"\xff\xfe\x00" * 100)
    rows = _run(str(path)).report("lines", lines="step").rows
    assert [row["contents"] for row in rows] == ["", ""]


def test_a_run_without_lines_says_how_to_get_them(source: str) -> None:
    result = make_result({"kernels": [{"name": "k", "start": 1, "end": 2}]})
    assert 'sources="lines"' in str(result.report("lines"))
    assert "No function that launched work matches nope" in str(_run(source).report("lines", lines="nope"))
    assert str(make_result({}).report("lines"))


def test_recursion_counts_a_launch_once_a_line() -> None:
    frame = {"file": "r.py", "function": "r", "first_line": 1, "is_user": 1}
    stacks = [{"id": 1, "parent": 0, "line": 5, **frame}, {"id": 2, "parent": 1, "line": 2, **frame},
              {"id": 3, "parent": 2, "line": 2, **frame}]  # fmt: skip
    result = make_result({"kernels": [{"name": "k", "start": 0, "end": 10, "stack": 3}], "stacks": stacks})
    rows = result.report("lines").rows
    assert [(row["line"], row["hits"], row["gpu_ns"]) for row in rows] == [(2, 1, 10), (5, 1, 10)]


def test_stacks_that_lead_in_a_circle_end() -> None:
    """In a file that somebody made."""
    stacks = [{"id": 1, "parent": 2, "function": "a"}, {"id": 2, "parent": 1, "function": "b"}]
    result = make_result({"kernels": [{"name": "k", "start": 0, "end": 1, "stack": 1}], "stacks": stacks})
    assert [f.function for f in result.python_stacks().frames(1)] == ["a"]
    assert [f.function for f in result.python_stacks().frames(2)] == ["b", "a"]
    assert result.python_stacks().frames(9) == []


@pytest.mark.parametrize(
    ("pattern", "line", "means"),
    [
        ("train.py", 4, True),
        ("train.py:4", 4, True),
        ("train.py:4", 5, False),
        ("pkg/train.py", 4, True),
        ("rain.py", 4, False),
        ("*.py", 4, True),
        ("/app/pkg/train.py:4", 4, True),
        ("step", 4, True),
        ("Model.step", 4, True),
        ("odel.step", 4, False),
        ("Model.*", 4, True),
    ],
)
def test_patterns(pattern: str, line: int, means: bool) -> None:
    assert LinePattern(pattern).matches("/app/pkg/train.py", "Model.step", line) is means


def test_collapsed_stacks(source: str, tmp_path: Path) -> None:
    out = tmp_path / "run.folded"
    _run(source).export(out)
    main = "<module> (/app/main.py:9)"
    assert out.read_text().splitlines() == [
        f"{main};step ({source}:4);gemm 300",
        f"{main};step ({source}:6);act ({source}:11);relu (/site-packages/t.py:1);relu 100",
        "(no Python code);[CUDA memcpy HtoD] 100",
    ]


def test_names_do_not_end_a_frame_or_a_line(source: str, tmp_path: Path) -> None:
    out = tmp_path / "run.folded"
    _run(source, hostile=True).export(out)
    lines = out.read_text().split("\n")
    assert len(lines) == 4 and lines[-1] == ""
    assert all(line.rpartition(" ")[2].isdigit() for line in lines[:-1])
    assert [line.count(";") for line in lines[:-1]] == [2, 4, 1]


def test_speedscope(source: str, tmp_path: Path) -> None:
    out = tmp_path / "run.speedscope.json.gz"
    _run(source, hostile=True).export(out)
    document = json.loads(gzip.decompress(out.read_bytes()))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    [profile] = document["profiles"]
    assert (profile["type"], profile["unit"], profile["startValue"], profile["endValue"]) == (
        "sampled",
        "nanoseconds",
        0,
        500,
    )
    assert profile["weights"] == [300, 100, 100]
    names = [[frames[i]["name"] for i in sample] for sample in profile["samples"]]
    assert names[0] == ["<module>", "step", "gemm"]
    assert names[1] == ["<module>", "step", HOSTILE, "relu", "relu"]
    assert frames[profile["samples"][0][1]] == {"name": "step", "file": source, "line": 4}


def test_a_trace_says_where_work_was_launched(source: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    _run(source).export(out)
    events = json.loads(out.read_text())["traceEvents"]
    by_name = {e["name"]: e["args"] for e in events if e.get("cat") in ("kernel", "gpu_memcpy")}
    assert by_name["gemm"]["Call stack"] == f"{source}(4): step;/app/main.py(9): <module>"
    assert by_name["relu"]["Call stack"].startswith("/site-packages/t.py(1): relu;")
    assert "Call stack" not in next(args for name, args in by_name.items() if "Memcpy" in name)
