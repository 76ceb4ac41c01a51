"""PyTorch on a real GPU (marker ``gpu``). What needs no PyTorch is in tests/behaviours, for the stand-in and for hardware."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import cuptiprof
from cuptiprof.device.locate import driver_present

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def torch():  # type: ignore[no-untyped-def]
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    module.ones(8, device="cuda").sum().item()
    return module


def test_every_launch_has_its_record_and_region(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1 << 16, device="cuda")
    with cuptiprof.profile() as prof:
        with cuptiprof.region("add"):
            for _ in range(1000):
                x.add_(1)
        with cuptiprof.region("mul"):
            for _ in range(500):
                x.mul_(1)
    r = prof.result()
    assert not r.losses, r.losses.line()
    counts = {p: int((r.kernels["region"] == p).sum()) for p in ("add", "mul", "")}
    assert counts == {"add": 1000, "mul": 500, "": 0}
    assert r.metadata["launches"]["launches"] == 1500
    assert (r.kernels["end"] > r.kernels["start"]).all()
    assert set(r.kernels["thread"]) == {threading.get_native_id()}
    assert not r.simulated


def test_kernel_times_lie_on_the_run_clock(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1 << 20, device="cuda")
    with cuptiprof.profile() as prof, cuptiprof.region("all"):
        x.add_(1)
        torch.cuda.synchronize()
    r = prof.result()
    region = r.regions.row(0)
    assert region["start"] <= int(r.kernels["start"].min())
    assert int(r.kernels["end"].max()) <= region["end"]


def test_backward_inherits_the_region(torch) -> None:  # type: ignore[no-untyped-def]
    layer = torch.nn.Linear(64, 64).cuda()
    x = torch.randn(32, 64, device="cuda")
    layer(x).sum().backward()
    with cuptiprof.profile() as prof:
        with cuptiprof.region("fwd"):
            loss = layer(x).sum()
        with cuptiprof.region("bwd"):
            loss.backward()
    r = prof.result()
    assert set(r.kernels["region"]) == {"fwd", "bwd"}
    assert len(set(r.kernels["thread"])) == 2


def test_copies_sets_and_streams(torch) -> None:  # type: ignore[no-untyped-def]
    host = torch.ones(1 << 16).pin_memory()
    with cuptiprof.profile() as prof:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            device = host.to("cuda", non_blocking=True)
            device.zero_()
        side.synchronize()
        device.cpu()
    r = prof.result()
    assert set(r.memcpys["copy_kind"]) == {1, 2}
    assert int(r.memcpys["bytes"].max()) == host.nbytes
    assert not r.losses


def test_cuda_graphs(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.add_(1)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        for _ in range(5):
            x.add_(1)
    with cuptiprof.profile() as prof, cuptiprof.region("replay"):
        for _ in range(10):
            graph.replay()
    r = prof.result()
    assert len(r.kernels) == 50
    assert len(set(r.kernels["correlation_id"])) == 10
    assert set(r.kernels["region"]) == {"replay"}


def test_cuda_profiler_start_stop(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1024, device="cuda")
    with cuptiprof.profile(profile_from_start=False) as prof:
        x.add_(1)
        torch.cuda.cudart().cudaProfilerStart()
        for _ in range(7):
            x.add_(1)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()
        x.add_(1)
    assert len(prof.result().kernels) == 7


def test_agrees_with_torch_profiler(torch) -> None:  # type: ignore[no-untyped-def]
    """Same kernels and, within the noise of two runs, the same times."""
    a = torch.randn(2048, 2048, device="cuda")

    def work() -> None:
        for _ in range(50):
            _ = a @ a
        torch.cuda.synchronize()

    work()
    with cuptiprof.profile() as prof:
        work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as theirs:
        work()
    events = [e for e in theirs.events() if "gemm" in e.name.lower() or "nvjet" in e.name.lower()]
    ours = prof.result().filter("regex:gemm|nvjet").kernels
    assert len(ours) == len(events) == 50
    mean = float(ours["duration"].mean()) / 1e3
    other = sum(e.device_time for e in events) / len(events)
    assert abs(mean - other) / other < 0.05


def test_many_launches_from_many_threads(torch) -> None:  # type: ignore[no-untyped-def]
    def work() -> None:
        x = torch.ones(64, device="cuda")
        with cuptiprof.region("worker"):
            for _ in range(20_000):
                x.add_(1)

    with cuptiprof.profile(activities=["kernel"]) as prof:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    r = prof.result()
    counts = r.metadata["launches"]
    assert counts["launches"] >= 160_000
    assert r.losses["unreconciled_launches"] == 0
    assert counts["launches"] == len(r.kernels) + counts["kernels_lost_in_pool"]


def test_repeated_sessions(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(64, device="cuda")
    for _ in range(20):
        with cuptiprof.profile() as prof:
            for _ in range(100):
                x.add_(1)
        assert len(prof.result().kernels) == 100
        assert not prof.result().losses


def test_the_example_on_the_command_line(torch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run = tmp_path / "run"
    script = str(ROOT / "examples" / "train_transformer.py")
    command = [sys.executable, "-m", "cuptiprof", "run", "--device", "cuda", "-o", str(run), script, "--steps", "3"]
    subprocess.run(command, check=True)
    r = cuptiprof.open(run)
    assert {"fwd", "bwd", "opt"} <= set(r.kernels["region"])
