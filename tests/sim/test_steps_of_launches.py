"""Which training step a launch belongs to: the one that runs when it is made, on whatever thread."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.sim.sim_device import Op, SimDevice


@pytest.mark.parametrize("keep", ["latest", "spill"])
def test_work_that_runs_late_is_its_launch_s_steps(keep: str, sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", keep=keep) as prof:
        for step in range(4):
            sim.launch(f"step{step}", duration_ns=5_000_000)  # each runs long after its step has ended
            sim.call(Op.MEMCPY, bytes=1 << 20)
            prof.step()
    result = prof.result()
    assert dict(zip(result.kernels["name"], result.kernels["step"].tolist(), strict=True)) == {
        f"step{i}": i + 1 for i in range(4)
    }
    assert sorted(result.memcpys["step"].tolist()) == [1, 2, 3, 4]


def test_without_steps_there_are_none(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        sim.launch("a", count=3)
    assert prof.result().kernels["step"].tolist() == [0, 0, 0]


def test_steps_go_on_over_cycles(sim: SimDevice) -> None:
    seen: list[Any] = []
    schedule = cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2)
    with cuptiprof.profile(device="sim", schedule=schedule, on_ready=lambda p: seen.append(p.result())) as prof:
        for step in range(8):
            sim.launch(f"step{step}")
            prof.step()
    for result in seen:
        assert [f"step{s - 1}" for s in result.kernels["step"]] == list(result.kernels["name"])
    assert [r.kernels["step"].tolist() for r in seen] == [[3, 4], [7, 8]]


def test_a_step_is_everybodys(sim: SimDevice) -> None:
    """Threads launch between barriers around step(): all know the step that one of them ended."""
    threads, steps = 4, 50
    barrier = threading.Barrier(threads)

    def work(prof: Any, thread: int) -> None:
        for step in range(steps):
            barrier.wait()
            sim.launch(f"s{step}")
            barrier.wait()
            if thread == 0:
                prof.step()

    with cuptiprof.profile(device="sim") as prof:
        workers = [threading.Thread(target=work, args=(prof, t)) for t in range(threads)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    kernels = prof.result().kernels
    assert len(kernels) == threads * steps
    assert [f"s{s - 1}" for s in kernels["step"]] == list(kernels["name"])
    assert np.all(np.bincount(kernels["step"])[1:] == threads)


def test_a_step_survives_a_saved_run(sim: SimDevice, tmp_path: Any) -> None:
    with cuptiprof.profile(device="sim") as prof:
        for _ in range(3):
            sim.launch("k")
            prof.step()
    prof.save(tmp_path / "run")
    assert cuptiprof.open(tmp_path / "run").kernels["step"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("keep", ["latest", "spill"])
def test_kernels_of_chosen_steps(keep: str, sim: SimDevice) -> None:
    chosen = cuptiprof.KernelFilter("k*", steps=[0, *range(3, 5)])
    with cuptiprof.profile(device="sim", kernels=chosen, keep=keep) as prof:
        for step in range(6):
            sim.launch(f"k{step}", count=10)
            sim.launch("other")
            prof.step()
    result = prof.result()
    assert list(np.unique(result.kernels["name"])) == ["k0", "k3", "k4"]
    assert len(result.kernels) == 30
    assert result.losses["filter_rejected"] == 36


def test_a_filter_by_step_after_the_run(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        for step in range(4):
            sim.launch(f"k{step}", count=2)
            prof.step()
    assert list(prof.result().filter(cuptiprof.KernelFilter(steps=2)).kernels["name"]) == ["k2", "k2"]
    launches = [cuptiprof.Launch("k", step=s) for s in (None, 0, 1, 2)]
    assert cuptiprof.KernelFilter(steps=(1, 2)).select(launches) == [2, 3]
    assert cuptiprof.KernelFilter(steps=1, skip=1, count=1).select([*launches, *launches]) == [6]


def test_counters_of_one_step(sim: SimDevice) -> None:
    """One kernel in each step is counted in the chosen steps alone, and its value belongs to it."""
    with cuptiprof.profile(
        device="sim", kernels=cuptiprof.KernelFilter("gemm", steps=[2, 5]), metrics=["inst_executed"], strategy="replay"
    ) as prof:
        for _ in range(8):
            sim.launch("gemm")
            sim.launch("other", count=3)
            prof.step()
    result = prof.result()
    counted = result.metric_ranges
    assert list(counted["name"]) == ["gemm", "gemm"]
    assert result.kernels["step"].tolist() == [3, 6]
    assert counted["correlation_id"].tolist() == result.kernels["correlation_id"].tolist()


def test_a_step_that_is_no_number() -> None:
    with pytest.raises(cuptiprof.CuptiprofError, match="steps"):
        cuptiprof.KernelFilter(steps="two")  # type: ignore[arg-type]
    with pytest.raises(cuptiprof.CuptiprofError, match="out of range"):
        cuptiprof.KernelFilter(steps=-1)


def test_the_example_runs() -> None:
    example = Path(__file__).resolve().parents[2] / "examples/counters_of_a_step.py"
    done = subprocess.run([sys.executable, str(example), "--device", "sim"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[1:3] for line in lines] == [[s, r] for s in "37" for r in ("fwd", "fwd", "bwd", "bwd", "bwd")]
    assert "nan" not in done.stdout
