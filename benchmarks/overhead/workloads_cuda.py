"""The workloads on a GPU: a launch loop in C over the driver API, PyTorch, CUDA graphs, Triton.

Imports nothing of cuptiprof: the condition "nothing" runs these in a process that never saw it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.overhead.native import EmptyKernel
from benchmarks.overhead.workloads import LOOP_REGION, Region, Workload, launch_loop

GRAPH_NODES, GRAPH_REPLAYS = 64, 16


def timed_by_events(torch: Any, step: Callable[[Region], None]) -> Callable[[Region], float]:
    """GPU time from the first to the last work of a step, ns, by CUDA events on the current stream."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def gpu_ns(region: Region) -> float:
        begin.record()
        step(region)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e6

    return gpu_ns


def with_events(torch: Any, name: str, launches: int, step: Callable[[Region], None]) -> Workload:
    for _ in range(3):
        step(_no_region)
    torch.cuda.synchronize()
    return Workload(name, launches, step, gpu_ns=timed_by_events(torch, step))


class _NoRegion:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


def _no_region(name: str) -> _NoRegion:
    return _NoRegion()


def inference(torch: Any) -> Workload:
    """100 blocks of linear, GELU and an addition at batch 1: about 300 small kernels."""
    layers = [torch.nn.Linear(256, 256, device="cuda") for _ in range(100)]
    x = torch.randn(1, 256, device="cuda")

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def step(region: Region) -> None:
        y = x
        for layer in layers:
            with region("layer"):
                y = y + torch.nn.functional.gelu(layer(y))
        torch.cuda.synchronize()

    return with_events(torch, "inference", 300, step)


def training(torch: Any) -> Workload:
    """Forward, backward and AdamW of a small transformer; launches as torch makes them (counted by the profiler)."""
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda")
    model = torch.nn.TransformerEncoder(layer, 6)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(16, 128, 512, device="cuda")

    def step(region: Region) -> None:
        with region("step"):
            with region("fwd"):
                loss = model(x).square().mean()
            with region("bwd"):
                loss.backward()
            with region("opt"):
                optimizer.step()
                optimizer.zero_grad()
        torch.cuda.synchronize()

    return with_events(torch, "training", 0, step)


def graph_replay(torch: Any) -> Workload:
    """A graph of 64 kernels replayed 16 times."""
    x = torch.ones(1024, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.add_(1)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_NODES):
            x.add_(1)

    def step(region: Region) -> None:
        with region("replay"):
            for _ in range(GRAPH_REPLAYS):
                graph.replay()
        torch.cuda.synchronize()

    return with_events(torch, "graph_replay", GRAPH_REPLAYS, step)


def triton_kernels(torch: Any) -> Workload:
    """500 launches of a Triton kernel that adds two vectors."""
    from benchmarks.overhead.triton_kernel import add_kernel

    a, b, out = (torch.ones(4096, device="cuda") for _ in range(3))

    def step(region: Region) -> None:
        for _ in range(5):
            with region("add"):
                for _ in range(100):
                    add_kernel[(4,)](a, b, out, 4096, BLOCK=1024)
        torch.cuda.synchronize()

    return with_events(torch, "triton", 500, step)


def workloads(library: Path | str) -> tuple[list[Workload], dict[str, str]]:
    """All that can be made here, and why the rest cannot. `library`: see ``native.build``, or why there is none."""
    made: list[Workload] = []
    reasons: dict[str, str] = {}
    if isinstance(library, Path):
        kernel = EmptyKernel(library)
        for name, threads in (("launch_loop", 1), ("launch_loop_8_threads", 8)):
            made.append(launch_loop(name, lambda: kernel.launch(LOOP_REGION), kernel.synchronize, threads))
    else:
        reasons["launch_loop"] = reasons["launch_loop_8_threads"] = library
    try:
        import torch
    except ImportError as e:
        return made, reasons | dict.fromkeys(("inference", "training", "graph_replay", "triton"), str(e))
    if not torch.cuda.is_available():
        why = "this torch has no CUDA"
        return made, reasons | dict.fromkeys(("inference", "training", "graph_replay", "triton"), why)
    makers = {"inference": inference, "training": training, "graph_replay": graph_replay, "triton": triton_kernels}
    for name, make in makers.items():
        try:
            made.append(make(torch))
        except Exception as e:  # a workload that cannot run here is a row with its reason
            reasons[name] = f"{type(e).__name__}: {e}"
    return made, reasons
