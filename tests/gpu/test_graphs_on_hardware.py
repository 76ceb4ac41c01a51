"""CUDA graphs of PyTorch on a real GPU (marker ``gpu``): which node's work is given which place of capture."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.device.locate import driver_present

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]
ROOT = Path(__file__).resolve().parents[2]
REPLAYS = 50


@pytest.fixture(scope="module")
def torch():  # type: ignore[no-untyped-def]
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    x = module.ones(8, device="cuda")
    x.add_(1).mul_(2).sum().item()
    return module


def captures(result: Result) -> Counter[tuple[str, str, int]]:
    """(region of the launch, of the capture, whether that is known) of the kernels of graphs."""
    k = result.kernels.where(result.kernels["graph_node_id"] != 0)
    return Counter(zip(k["region"], k["capture_region"], k["capture_known"].tolist(), strict=True))


def captured(torch, x):  # type: ignore[no-untyped-def]
    graph = torch.cuda.CUDAGraph()
    with cuptiprof.region("capture"), torch.cuda.graph(graph):
        with cuptiprof.region("add"):
            x.add_(1)
            x.add_(1)
        with cuptiprof.region("mul"):
            x.mul_(1)
    return graph


def test_each_kernel_has_the_region_that_captured_it(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1 << 16, device="cuda")
    with cuptiprof.profile() as prof:
        graph = captured(torch, x)
        with cuptiprof.region("replay"):
            for _ in range(REPLAYS):
                graph.replay()
        torch.cuda.synchronize()
        graph.reset()
    r = prof.result()
    assert not r.losses, r.losses.line()
    assert captures(r) == {
        ("replay", "capture/add", 1): 2 * REPLAYS,
        ("replay", "capture/mul", 1): REPLAYS,
    }
    counts = r.metadata["launches"]
    assert counts["graph_launches"] == REPLAYS and counts["graph_launches_unknown"] == 0
    assert counts["graph_work"] == counts["graph_work_received"] == 3 * REPLAYS


def test_a_graph_older_than_the_session_says_so(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1 << 16, device="cuda")
    graph = captured(torch, x)
    with cuptiprof.profile() as prof:
        with cuptiprof.region("replay"):
            graph.replay()
        torch.cuda.synchronize()
    r = prof.result()
    assert captures(r) == {("replay", "", 0): 3}
    assert r.metadata["launches"]["graph_launches_unknown"] == 1


def test_a_side_stream_joined_to_the_capture(torch) -> None:  # type: ignore[no-untyped-def]
    """A walk of the graph's edges from the current stream would not see what runs beside."""
    x, y = (torch.ones(1 << 16, device="cuda") for _ in range(2))
    side = torch.cuda.Stream()
    with cuptiprof.profile() as prof:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            main = torch.cuda.current_stream()
            side.wait_stream(main)
            with cuptiprof.region("side"), torch.cuda.stream(side):
                y.add_(1)
            with cuptiprof.region("main"):
                x.add_(1)
            main.wait_stream(side)
        graph.replay()
        torch.cuda.synchronize()
    assert captures(prof.result()) == {("", "side", 1): 1, ("", "main", 1): 1}


def test_a_long_graph_is_captured_without_loss(torch) -> None:  # type: ignore[no-untyped-def]
    x = torch.ones(1 << 10, device="cuda")
    nodes = 20_000
    with cuptiprof.profile(activities=["kernel"]) as prof:
        graph = torch.cuda.CUDAGraph()
        with cuptiprof.region("long"), torch.cuda.graph(graph):
            for _ in range(nodes):
                x.add_(1)
        graph.replay()
        torch.cuda.synchronize()
    r = prof.result()
    assert not r.losses, r.losses.line()
    assert np.count_nonzero(r.kernels["capture_known"]) == nodes


def test_the_example() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "graph_capture.py")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "attention" in done.stdout and "mlp" in done.stdout
