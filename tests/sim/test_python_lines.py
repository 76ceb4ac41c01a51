"""The line and the Python stack of each launch, against what Python itself said there."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from line_programs import Launcher, Place, blocks, run, said

import cuptiprof
from cuptiprof import _core
from cuptiprof.errors import SessionError
from cuptiprof.sim.sim_device import SimDevice


def _stacks(result: cuptiprof.Result) -> dict[str, list[Place]]:
    """Kernel -> places from the innermost."""
    stacks = result.python_stacks()
    return {
        name: [(f.file, f.function, f.line) for f in stacks.frames(int(stack))]
        for name, stack in zip(result.kernels["name"], result.kernels["stack"], strict=True)
    }


def _profiled(source: list[str], sources: Any) -> tuple[cuptiprof.Result, list[list[Place]]]:
    launcher = Launcher()
    with cuptiprof.profile(device="sim", activities=["kernel"], sources=sources) as prof:
        run(source, launcher)
    result = prof.result()
    assert len(result.kernels) == len(launcher.truth)
    assert not result.losses
    return result, launcher.truth


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=blocks())
def test_the_stack_of_each_launch_is_what_python_says(sim: SimDevice, source: list[str]) -> None:
    result, truth = _profiled(source, "stacks")
    found = _stacks(result)
    for number, said_there in enumerate(truth):
        stack = found[f"k{number}"]
        at = next(i for i, place in enumerate(stack) if place[1] == "LAUNCH")  # those further in launch
        assert stack[at + 1 :] == said_there


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=blocks())
def test_the_line_of_each_launch_is_the_innermost_of_the_program(sim: SimDevice, source: list[str]) -> None:
    result, truth = _profiled(source, "lines")
    lines = dict(zip(result.kernels["name"], result.kernels["line"], strict=True))
    for number, said_there in enumerate(truth):
        # What the standard library calls back (a thread's run) lies further out.
        file, function, line = next(p for p in said_there if not p[0].startswith("/") or p[0] == __file__)
        assert lines[f"k{number}"] == f"{file}:{line} {function}"
    assert {len(stack) for stack in _stacks(result).values()} == {1}


def test_threads_that_run_at_once_keep_apart(sim: SimDevice) -> None:
    """Each launches from the same lines and from code of its own that is made and dies meanwhile."""
    source = ["def f(n):", "    return f(n - 1) if n else LAUNCH()", "for i in range(150):", "    f(i % 9)",
              "    exec('pass\\n' * (i % 5) + 'LAUNCH()')"]  # fmt: skip
    launchers = [Launcher(f"t{i}_") for i in range(4)]
    with cuptiprof.profile(device="sim", activities=["kernel"], sources="stacks") as prof:
        threads = [threading.Thread(target=run, args=(source, launcher)) for launcher in launchers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = _stacks(prof.result())
    for i, launcher in enumerate(launchers):
        assert len(launcher.truth) == 300
        assert [found[f"t{i}_{k}"][-len(t) :] for k, t in enumerate(launcher.truth)] == launcher.truth


def test_code_that_dies_is_not_taken_for_what_comes_to_lie_there(sim: SimDevice) -> None:
    """exec in a loop: the same addresses, the same names, other lines."""
    source = ["for i in range(300):", "    exec('pass\\n' * (i % 7) + 'LAUNCH()\\n' + 'pass\\n' * 5 + 'LAUNCH()')"]
    result, truth = _profiled(source, "stacks")
    found = _stacks(result)
    assert [found[f"k{i}"][-len(t) :] for i, t in enumerate(truth)] == truth
    result, truth = _profiled(source, "lines")
    wanted = [f"{file}:{line} {function}" for (file, function, line), *_ in truth]
    lines = dict(zip(result.kernels["name"], result.kernels["line"], strict=True))
    assert [lines[f"k{i}"] for i in range(len(truth))] == wanted


def test_a_deep_recursion_keeps_its_innermost_frames(sim: SimDevice) -> None:
    source = ["def r(n):", "    return r(n - 1) if n else LAUNCH()", "r(1500)"]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(4000)
    try:
        result, truth = _profiled(source, "stacks")
    finally:
        sys.setrecursionlimit(limit)
    stack = _stacks(result)["k0"]
    assert stack[-1] == ("", "(outer frames)", 0)
    at = next(i for i, place in enumerate(stack) if place[1] == "LAUNCH")
    assert stack[at + 1 : -1] == truth[0][: len(stack) - at - 2]
    assert len(stack) == 1025


def test_without_the_source_nothing_is_kept(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        sim.launch("k")
    result = prof.result()
    assert result.kernels["line"][0] == ""
    assert result.kernels["stack"][0] == 0
    assert len(result.stacks) == 0


def test_copies_and_sets_have_lines(sim: SimDevice) -> None:
    from cuptiprof.sim.sim_device import Op

    with cuptiprof.profile(device="sim", sources="lines") as prof:
        sim.call(Op.MEMCPY, bytes=8)
        sim.call(Op.MEMSET, bytes=8)
    first = said(sys._getframe())[0]
    result = prof.result()
    assert result.memcpys["line"][0] == f"{first[0]}:{first[2] - 2} {first[1]}"
    assert result.memsets["line"][0] == f"{first[0]}:{first[2] - 1} {first[1]}"


def test_frames_of_a_named_package_count_as_the_users(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", sources={"lines": {"packages": ["cuptiprof"]}}) as prof:
        sim.launch("k")
    line = str(prof.result().kernels["line"][0])
    assert Path(cuptiprof.__file__).parent.as_posix() in line


@pytest.mark.parametrize(
    ("sources", "hint"),
    [
        ({"lines": {"packages": ["cuptiproof"]}}, "cuptiprof"),
        ({"lines": {"package": ["torch"]}}, "packages"),
        ({"stacks": {"packages": [1]}}, "packages"),
        (["line"], "lines"),
    ],
)
def test_what_is_no_source_is_refused(sim: SimDevice, sources: Any, hint: str) -> None:
    with pytest.raises(SessionError) as e:
        cuptiprof.profile(device="sim", sources=sources).start()
    assert hint in e.value.hint
    cuptiprof.profile(device="sim").start().stop()


def test_frames_that_are_not_what_python_says_are_refused(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuptiprof.session import python_frames

    python_frames.check_frames.cache_clear()
    monkeypatch.setattr(_core, "read_frames", lambda: [("other.py", "f", 1)])
    with pytest.raises(SessionError, match="cannot be read"):
        cuptiprof.profile(device="sim", sources="lines").start()
    monkeypatch.undo()
    python_frames.check_frames.cache_clear()
    cuptiprof.profile(device="sim", sources="lines").start().stop()


def test_saved_and_spilled_runs_keep_stacks(sim: SimDevice, tmp_path: Path) -> None:
    launcher = Launcher()
    source = ["def f():", "    LAUNCH()", "for _ in range(3):", "    f()"]
    with cuptiprof.profile(
        device="sim", activities=["kernel"], sources="stacks", keep="spill", spill_dir=tmp_path
    ) as prof:
        run(source, launcher)
    result = prof.result()
    wanted = _stacks(result)
    assert [stack[-len(t) :] for stack, t in zip(wanted.values(), launcher.truth, strict=True)] == launcher.truth
    result.save(tmp_path / "run.cuptiprof")
    opened = cuptiprof.open(tmp_path / "run.cuptiprof")
    assert _stacks(opened) == wanted
    assert list(opened.kernels["line"]) == list(result.kernels["line"])


def test_the_example_runs(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples/gpu_time_by_line.py"
    done = subprocess.run(
        [sys.executable, str(example), "--device", "sim"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "return weights @ v" in done.stdout
    assert f"{example}:17 attend\n  {example}:22 layer\n  {example}:35 main" in done.stdout
    assert (tmp_path / "lines.speedscope.json").is_file()
