"""Sessions: states, windows, schedules, filters while collecting, fork, and what a hundred of them cost."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

import pytest
from gpu import ScenarioGpu
from scenarios import collected, launched

import cuptiprof
from cuptiprof.errors import BudgetError, DeviceError, SessionError
from cuptiprof.session.assemble import EmptySelectionWarning

pytest_plugins = ["behaviour_fixtures"]


def test_the_first_session_is_named_to_the_second(gpu: ScenarioGpu) -> None:
    with cuptiprof.profile(device=gpu.device):
        with pytest.raises((SessionError, DeviceError)) as e:
            cuptiprof.profile(device=gpu.device).start()
        assert "stop" in str(e.value)
    assert launched(collected(gpu, lambda: gpu.launch("k"))) == ["k"]


def test_states(gpu: ScenarioGpu) -> None:
    gpu.prepare("a", "b", "c")
    prof = cuptiprof.profile(device=gpu.device)
    with pytest.raises(SessionError, match="without start"):
        prof.stop()
    with pytest.raises(SessionError):
        prof.result()
    prof.start()
    with pytest.raises(SessionError):
        prof.start()
    gpu.launch("a")
    prof.pause()
    with pytest.raises(SessionError):
        prof.pause()
    gpu.launch("b")
    prof.resume()
    gpu.launch("c")
    result = prof.stop()
    assert launched(result) == ["a", "c"]
    assert not result.losses
    with pytest.raises(SessionError):
        prof.stop()


def test_profile_from_start_off(gpu: ScenarioGpu) -> None:
    gpu.prepare("before", "inside", "after")
    with cuptiprof.profile(device=gpu.device, profile_from_start=False) as prof:
        gpu.launch("before")
        assert prof.state == "armed"
        gpu.profiler_start()
        with cuptiprof.region("window"):
            gpu.launch("inside", count=2)
        gpu.profiler_stop()
        gpu.launch("after")
    result = prof.result()
    assert launched(result) == ["inside", "inside"]
    assert set(result.kernels["region"]) == {"window"}
    assert not result.losses


def test_schedule(gpu: ScenarioGpu) -> None:
    gpu.prepare(*(f"step{i}" for i in range(10)))
    seen = []
    prof = cuptiprof.profile(
        device=gpu.device,
        schedule=cuptiprof.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_ready=lambda p: seen.append(launched(p.result())),
    )
    with prof:
        for step in range(10):
            gpu.launch(f"step{step}")
            prof.step()
    assert seen == [["step2", "step3"], ["step6", "step7"]]
    assert [n for n in prof.result().markers["name"] if n.startswith("ProfilerStep")]


def test_what_cannot_be_had_is_refused_before_anything_starts(gpu: ScenarioGpu) -> None:
    wrong: list[dict[str, Any]] = [{"budget": "1 KB"}, {"budget": "many"}, {"keep": "all"}, {"budget": 0}]
    for arguments in wrong:
        with pytest.raises(BudgetError):
            cuptiprof.profile(device=gpu.device, **arguments).start()
    with pytest.raises(DeviceError):
        cuptiprof.profile(device="gpu").start()
    with cuptiprof.profile(device=gpu.device):
        pass


def test_filters_while_collecting(gpu: ScenarioGpu) -> None:
    gpu.prepare("sgemm_128", "relu", "sgemm_64")

    def work() -> None:
        with cuptiprof.region("fwd"):
            for i in range(3):
                gpu.launch("sgemm_128", (1 + i, 1, 1))
            gpu.launch("relu", count=3)
        with cuptiprof.region("bwd"):
            for i in range(3):
                gpu.launch("sgemm_64", (1 + i, 1, 1))

    def run(**options: Any) -> cuptiprof.Result:
        return collected(gpu, work, **options)

    assert set(run(kernels="*gemm*").kernels["name"]) == {"sgemm_128", "sgemm_64"}
    assert set(run(kernels="*gemm*", regions="fwd").kernels["name"]) == {"sgemm_128"}
    picked = run(kernels="regex:gemm", launch_skip=2, launch_count=2)
    rows = picked.kernels.sorted_by("correlation_id")
    assert list(zip(rows["name"], rows["grid_x"], strict=True)) == [("sgemm_128", 3), ("sgemm_64", 1)]
    assert picked.losses["filter_rejected"] == 7
    nvprof = run(kernels=cuptiprof.KernelFilter.from_nvprof("::gemm:2"))
    rows = nvprof.kernels.sorted_by("correlation_id")
    assert list(zip(rows["name"], rows["grid_x"], strict=True)) == [("sgemm_128", 2), ("sgemm_64", 2)]
    with pytest.warns(EmptySelectionWarning, match="sgemm_64"):
        assert len(run(kernels="sgem_64").kernels) == 0


def test_a_forked_child_is_left_alone(gpu: ScenarioGpu) -> None:
    """The child makes no CUDA call: those that its parent could make, it cannot."""
    gpu.prepare("parent")
    with cuptiprof.profile(device=gpu.device) as prof:
        gpu.launch("parent")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            pid = os.fork()
        if pid == 0:
            try:
                with cuptiprof.region("child"):
                    pass
                prof.stop()
            except SessionError:
                os._exit(0)
            except BaseException:
                os._exit(2)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        gpu.launch("parent")
    assert len(prof.result().kernels) == 2


def test_sessions_cost_what_the_first_did(gpu: ScenarioGpu) -> None:
    """200 sessions: no growth in memory, threads or file descriptors."""

    def measure() -> tuple[int, int, int]:
        with open("/proc/self/statm") as f:
            rss = int(f.read().split()[1])
        return rss * os.sysconf("SC_PAGESIZE"), threading.active_count(), len(os.listdir("/proc/self/fd"))

    def session() -> None:
        with cuptiprof.profile(device=gpu.device, budget="16 MB") as prof, cuptiprof.region("r"):
            gpu.launch("k", count=1000)
        assert len(prof.result().kernels) == 1000
        assert not prof.result().losses

    for _ in range(20):
        session()
    before = measure()
    tasks = len(os.listdir("/proc/self/task"))
    for _ in range(180):
        session()
    after = measure()
    assert after[1] <= before[1] and after[2] <= before[2]  # fewer: of another test, ending meanwhile
    assert len(os.listdir("/proc/self/task")) <= tasks
    # CUPTI and the driver keep pools of their own, whose growth is not ours.
    assert after[0] - before[0] < (4 << 20 if gpu.simulated else 32 << 20)
