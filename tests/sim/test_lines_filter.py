"""Work chosen by the line, file or function it was launched from: what is kept, what is counted, what is shown later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from line_programs import Launcher, run

import cuptiprof
from cuptiprof.errors import FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch
from cuptiprof.sim.sim_device import SimDevice

PROGRAM = """
class Model:
    def forward(self):
        LAUNCH()
        self.attend()

    def attend(self):
        LAUNCH()

for _ in range(3):
    Model().forward()
    LAUNCH()
""".splitlines()

ALL = {f"k{i}" for i in range(9)}  # three rounds of forward, attend, <module>
CASES = [
    ("program.py:4", {"k0", "k3", "k6"}),
    ("program.py:8", {"k1", "k4", "k7"}),
    ("program.py:12", {"k2", "k5", "k8"}),
    ("program.py:11", {"k0", "k1", "k3", "k4", "k6", "k7"}),
    ("forward", {"k0", "k1", "k3", "k4", "k6", "k7"}),
    ("Model.attend", {"k1", "k4", "k7"}),
    ("Model.a*", {"k1", "k4", "k7"}),
    ("program.py", ALL),
    ("other.py", set()),
    (["program.py:4", "attend"], {"k0", "k1", "k3", "k4", "k6", "k7"}),
]


def _run() -> Launcher:
    launcher = Launcher()
    run(PROGRAM, launcher)
    return launcher


@pytest.mark.parametrize(("lines", "kept"), CASES)
@pytest.mark.filterwarnings("ignore::cuptiprof.session.assemble.EmptySelectionWarning")
def test_what_is_kept(sim: SimDevice, lines: str | list[str], kept: set[str]) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"], kernels=KernelFilter(lines=lines)) as prof:
        _run()
    result = prof.result()
    assert set(result.kernels["name"]) == kept
    assert result.losses["filter_rejected"] == 9 - len(kept)


@pytest.mark.parametrize(("lines", "kept"), CASES)
def test_what_is_shown_of_a_run(sim: SimDevice, tmp_path: Path, lines: str | list[str], kept: set[str]) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"], sources="stacks") as prof:
        _run()
    result = prof.result()
    result.save(tmp_path / "run")
    for run_ in (result, cuptiprof.open(tmp_path / "run")):
        assert set(run_.filter(KernelFilter(lines=lines)).kernels["name"]) == kept


@pytest.mark.parametrize(("lines", "kept"), CASES[:6])
def test_what_is_counted(sim: SimDevice, lines: str | list[str], kept: set[str]) -> None:
    chosen = KernelFilter(lines=lines)
    with cuptiprof.profile(device="sim", activities=["kernel"], kernels=chosen, metrics=["ipc"]) as prof:
        _run()
    result = prof.result()
    assert set(result.metric_ranges["name"]) == kept
    assert len(result.metric_ranges) == len(kept)
    assert result.losses["uncounted"] == 0


def test_counts_are_of_what_the_line_launched(sim: SimDevice) -> None:
    for metrics in (None, ["ipc"]):
        with cuptiprof.profile(
            device="sim", activities=["kernel"], kernels=KernelFilter(lines="attend", skip=1, count=1), metrics=metrics
        ) as prof:
            _run()
        assert list(prof.result().kernels["name"]) == ["k4"]


def test_code_that_is_made_anew_is_judged_anew(sim: SimDevice) -> None:
    """The verdict is kept by stack; the address of a dead code object says nothing of the next one there."""
    launcher = Launcher()
    source = ["for i in range(200):", "    exec('pass\\n' * (i % 5) + 'LAUNCH()')"]
    with cuptiprof.profile(
        device="sim", activities=["kernel"], kernels=KernelFilter(lines="<string>:3"), metrics=["ipc"]
    ) as prof:
        run(source, launcher)
    assert list(prof.result().metric_ranges["name"]) == [f"k{i}" for i in range(2, 200, 5)]


def test_launches_to_try_a_filter_with() -> None:
    launches = [
        Launch("a", stack=[("/app/train.py", "Model.forward", 42), ("/app/main.py", "<module>", 3)]),
        Launch("b", stack=[("/app/main.py", "<module>", 4)]),
        Launch("c"),
    ]
    assert KernelFilter(lines="train.py:42").select(launches) == [0]
    assert KernelFilter(lines="main.py").select(launches) == [0, 1]
    assert KernelFilter(lines="main.py:4").select(launches) == [1]
    assert KernelFilter(lines="forward", kernels="b").select(launches) == []


def test_a_filter_by_lines_says_so() -> None:
    chosen = KernelFilter(lines=["train.py:42", "forward"])
    assert chosen.describe() == "from line 'train.py:42' or 'forward'"
    assert chosen.needs_lines and not chosen.selects_all and not chosen.needs_regions
    assert not KernelFilter("gemm").needs_lines


def test_an_empty_pattern_is_refused() -> None:
    with pytest.raises(FilterError, match="empty line pattern"):
        KernelFilter(lines="")


def _command_line(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", *options],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_lines_on_the_command_line(tmp_path: Path) -> None:
    """Also of an installed package that -m runs: its lines are the user's then."""
    source = (
        "import torch\n\ndef act(x):\n    return x.relu()\n\nx = torch.ones(64)\nfor _ in range(3):\n    x = act(x)\n"
    )
    package = tmp_path / "site-packages" / "packed"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "train.py").write_text(source)
    (tmp_path / "train.py").write_text(source)
    for options in (["train.py"], ["--line-include", "act", "train.py"]):
        table = _command_line(tmp_path, "--sources", "lines", "--view", "lines", *options)
        assert "return x.relu()" in table
        assert ("torch.ones(64)" in table) is (len(options) == 1)
    table = _command_line(package.parent, "--sources", "lines", "--view", "lines", "-m", "packed.train")
    assert f"act in {package}/train.py:3" in table
