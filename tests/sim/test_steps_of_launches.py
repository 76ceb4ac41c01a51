"""Which training step a launch belongs to: the one that runs when it is made, on whatever thread."""

from __future__ import annotations

import threading
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
