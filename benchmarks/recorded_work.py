"""The work that fixtures record: some kernels of each shape, copies and sets both ways, two streams, a graph."""

from __future__ import annotations

from collections.abc import Callable


def work(device: str) -> Callable[[], None]:
    """A function that does it once and waits for the GPU."""
    return _cuda() if device == "cuda" else _simulated()


def _simulated() -> Callable[[], None]:
    from cuptiprof.sim.sim_device import Op, SimDevice

    sim = SimDevice()
    sim.reset(virtual_clock=True, seed=7)

    def run() -> None:
        for i in range(12):
            sim.launch(
                f"_Z6scale{i % 3}Pfi",
                (64 + i, 1 + i % 2, 1),
                (128, 1, 1),
                count=4,
                stream=7 + i % 2,
                duration_ns=4000 + i,
            )
            sim.call(Op.MEMCPY, bytes=4096 * (i + 1), copy_kind=1 + i % 2, stream=7)
        sim.call(Op.MEMSET, bytes=65536, value=1)
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=11, stream=9)
        sim.launch("_Z4nodePf", count=5, stream=9)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=11, stream=9)
        sim.call(Op.GRAPH_LAUNCH, graph_id=11, stream=9)
        sim.synchronize()

    return run


def _cuda() -> Callable[[], None]:
    import torch

    host = torch.ones(1 << 14).pin_memory()
    x = torch.ones(1 << 14, device="cuda")
    a = torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.add_(1)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            x.add_(1)

    def run() -> None:
        for _ in range(8):
            y = host.to("cuda", non_blocking=True)
            y.mul_(2)
            (a @ a).relu_()
            with torch.cuda.stream(side):
                x.add_(1)
            y.cpu()
        x.zero_()
        graph.replay()
        torch.cuda.synchronize()

    return run
