"""The workloads on the stand-in: the same shapes of work as scripted launches. What they show is the cost of our code
on the host beside a driver that does next to nothing; nothing here is a measurement of hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.overhead.workloads import LOOP_REGION, Region, Workload, launch_loop
from cuptiprof.sim.sim_device import Op, SimDevice

DURATION_NS = 10  # so short that a step is bound by the host, whose cost is what can be seen here
GRAPH, GRAPH_STREAM, GRAPH_NODES, GRAPH_REPLAYS = 901, 40, 64, 16


def kernels(device: SimDevice, names: list[str], count: int) -> Any:
    """`count` launches that go through `names` in turn."""
    each = [device.ops(1, Op.KERNEL, name=f"_Z{len(n)}{n}Pf", duration_ns=DURATION_NS, grid=(16, 1, 1)) for n in names]
    return np.concatenate(each)[np.arange(count) % len(names)]


def inference(device: SimDevice) -> Workload:
    """300 small kernels of 20 names in 12 layers: batch 1."""
    layers = [device.prepare(kernels(device, [f"layer_op{i}" for i in range(20)], 25)) for _ in range(12)]

    def step(region: Region) -> None:
        for layer in layers:
            with region("layer"):
                layer()
        device.synchronize()

    return Workload("inference", 300, step)


def training(device: SimDevice) -> Workload:
    """1,500 kernels of 40 names with the copies of a step, in fwd, bwd and opt."""
    names = [f"train_op{i}" for i in range(40)]
    copy = device.ops(1, Op.MEMCPY, bytes=1 << 16, copy_kind=1)
    parts: dict[str, Callable[[], None]] = {
        "fwd": device.prepare(np.concatenate([copy, kernels(device, names, 500)])),
        "bwd": device.prepare(kernels(device, names, 800)),
        "opt": device.prepare(kernels(device, names[:5], 200)),
    }

    def step(region: Region) -> None:
        with region("step"):
            for name, part in parts.items():
                with region(name):
                    part()
        device.synchronize()

    return Workload("training", 1500, step)


def graph_replay(device: SimDevice) -> Workload:
    """A graph of 64 kernels replayed 16 times."""
    replay = device.prepare(device.ops(1, Op.GRAPH_LAUNCH, graph_id=GRAPH, stream=GRAPH_STREAM))
    node = device.ops(GRAPH_NODES, Op.KERNEL, name="_Z4nodePf", duration_ns=DURATION_NS, stream=GRAPH_STREAM)

    def prepare() -> None:
        device.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=GRAPH, stream=GRAPH_STREAM)
        device.run(node)
        device.call(Op.GRAPH_END_CAPTURE, graph_id=GRAPH, stream=GRAPH_STREAM)

    def step(region: Region) -> None:
        with region("replay"):
            for _ in range(GRAPH_REPLAYS):
                replay()
        device.synchronize()

    return Workload("graph_replay", GRAPH_REPLAYS, step, prepare)


def workloads() -> tuple[list[Workload], dict[str, str]]:
    """All there are on the stand-in, and why the rest is not."""
    device = SimDevice()
    launch = device.prepare(device.ops(LOOP_REGION, Op.KERNEL, name="_Z5emptyv", duration_ns=10))
    made = [
        launch_loop("launch_loop", launch, device.synchronize, 1),
        launch_loop("launch_loop_8_threads", launch, device.synchronize, 8),
        inference(device),
        training(device),
        graph_replay(device),
    ]
    return made, {"triton": "Triton kernels run on a GPU only"}
