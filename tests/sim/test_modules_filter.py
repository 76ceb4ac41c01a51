"""Work chosen by the PyTorch module it was launched in: what is kept, what is counted, what is shown later."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from module_programs import Block, Leaf, Sequential

import cuptiprof
from cuptiprof.errors import FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch
from cuptiprof.sim.sim_device import SimDevice

HEAD = {"head", "head before", "head after"}
ALL = {"model before", "model after", "a", "b", *HEAD}
CASES = [
    ("parts.0", {"a", "head"}),
    ("parts.1", {"b"}),
    ("Block.parts.0", {"a"}),
    ("parts.2", HEAD),
    ("parts.2.parts.0", {"head"}),
    ("*.2", HEAD),
    ("Block", ALL),
    ("Block.parts.[01]", {"a", "b"}),
    ("regex:parts\\.0$", {"a", "head"}),
    ("arts.0", set()),
    ("Other", set()),
    (["Block.parts.0", "parts.1"], {"a", "b"}),
]


def model() -> Block:
    return Block("model", Leaf("a"), Leaf("b"), Block("head", Leaf("head")))


@pytest.mark.parametrize(("modules", "kept"), CASES)
@pytest.mark.filterwarnings("ignore::cuptiprof.session.assemble.EmptySelectionWarning")
def test_what_is_kept(sim: SimDevice, modules: str | list[str], kept: set[str]) -> None:
    called = model()
    with cuptiprof.profile(device="sim", activities=["kernel"], kernels=KernelFilter(modules=modules)) as prof:
        called()
        sim.launch("outside")
    result = prof.result()
    assert set(result.kernels["name"]) == kept
    assert result.losses["filter_rejected"] == len(ALL) + 1 - len(kept)


@pytest.mark.parametrize(("modules", "kept"), CASES)
def test_what_is_shown_later(sim: SimDevice, modules: str | list[str], kept: set[str]) -> None:
    called = model()
    with cuptiprof.profile(device="sim", activities=["kernel"], sources=["modules", "lines"]) as prof:
        called()
        sim.launch("outside")
    kernels = prof.result().kernels
    mask = KernelFilter(modules=modules).mask(kernels)
    assert set(kernels.where(mask)["name"]) == kept
    with_lines = KernelFilter(modules=modules, lines="Leaf.forward").mask(kernels)
    assert set(kernels.where(with_lines)["name"]) <= kept


@pytest.mark.filterwarnings("ignore::cuptiprof.counters.live.CounterWarning")
@pytest.mark.parametrize("strategy", ["replay", "iterate"])
def test_what_is_counted(sim: SimDevice, strategy: str) -> None:
    called = model()
    chosen = KernelFilter(modules="parts.2")
    with cuptiprof.profile(device="sim", kernels=chosen, metrics=["achieved_occupancy"], strategy=strategy) as prof:
        for _ in range(3):
            called()
    result = prof.result()
    assert set(result.metric_ranges["name"]) == HEAD
    assert int(result.metric_ranges["occurrences"].sum()) == 9
    assert set(result.kernels["name"]) == HEAD


def test_what_is_counted_of_a_model_made_meanwhile(sim: SimDevice) -> None:
    """Not the launch that shows it first."""
    with cuptiprof.profile(device="sim", kernels=KernelFilter(modules="Block"), metrics=["achieved_occupancy"]) as prof:
        called = model()
        for _ in range(2):
            called()
    names, counts = np.unique(prof.result().metric_ranges["name"], return_counts=True)
    assert set(names) == ALL and dict(zip(names, counts, strict=True))["model before"] == 1
    assert set(counts) == {1, 2}


def test_counted_on_another_thread(sim: SimDevice) -> None:
    called = model()
    with cuptiprof.profile(
        device="sim", kernels=KernelFilter(modules="parts.1"), metrics=["achieved_occupancy"]
    ) as prof:
        thread = threading.Thread(target=called)
        thread.start()
        thread.join()
    assert list(prof.result().metric_ranges["name"]) == ["b"]


def test_counting_launches_of_a_module(sim: SimDevice) -> None:
    called = Sequential(Leaf("a"), Leaf("b"))
    with cuptiprof.profile(device="sim", kernels=KernelFilter(modules="0", skip=1, count=2)) as prof:
        for _ in range(5):
            called()
    assert list(prof.result().kernels["name"]) == ["a", "a"]


def test_launches_without_a_device() -> None:
    launches = [Launch("k", module=m) for m in ("Net#2.layers.0", "Net.head", "", "Net2.layers.0")]
    assert KernelFilter(modules="Net").select(launches) == [0, 1]
    assert KernelFilter(modules="Net.layers").select(launches) == [0]
    assert KernelFilter(modules="layers").select(launches) == [0, 3]
    assert KernelFilter().select(launches) == [0, 1, 2, 3]


def test_what_a_filter_says() -> None:
    chosen = KernelFilter(modules=["a", "b"])
    assert chosen.needs_modules and chosen.is_applied_late and not chosen.selects_all
    assert chosen.describe() == "in module 'a' or 'b'"
    assert not KernelFilter("gemm").needs_modules
    for bad in ("", "regex:("):
        with pytest.raises(FilterError):
            KernelFilter(modules=bad)


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from module_programs import Leaf, Sequential\nSequential(Leaf('a'), Leaf('b'))()\nLeaf('c')()\n"
    )
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "--module-include", "Sequential.1"]
    done = subprocess.run(
        [*command, "-o", "run", "-q", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert list(cuptiprof.open(tmp_path / "run").kernels["name"]) == ["b"]
