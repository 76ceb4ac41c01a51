"""A CUDA graph that is captured once and launched often: where its time goes, by the layer that captured each kernel.

python examples/graph_capture.py          # on a GPU by PyTorch; without one a graph of the simulated device
"""

from collections.abc import Callable

import torch

import cuptiprof
from cuptiprof.sim.sim_device import Op, SimDevice

LAYERS = {"attention": 3, "mlp": 2}
TOKENS = 200


def torch_graph() -> Callable[[], None]:
    layers = {name: torch.nn.Linear(1024, 1024, device="cuda") for name in LAYERS}
    x = torch.randn(16, 1024, device="cuda")
    for layer in layers.values():  # libraries set themselves up at the first call, which a capture does not allow
        layer(x).relu()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        for name, layer in layers.items():
            with cuptiprof.region(name):
                for _ in range(LAYERS[name]):
                    x = layer(x).relu()
    return graph.replay


def simulated_graph() -> Callable[[], None]:
    sim, graph, stream = SimDevice(), 1, 7
    sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=stream)
    for name, count in LAYERS.items():
        with cuptiprof.region(name):
            for _ in range(count):
                sim.launch("gemm", stream=stream, duration_ns=8000)
                sim.launch("relu", stream=stream, duration_ns=2000)
    sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=stream)
    return lambda: sim.call(Op.GRAPH_LAUNCH, graph_id=graph, stream=stream)


def main() -> None:
    on_gpu = torch.cuda.is_available()
    with cuptiprof.profile(device=None if on_gpu else "sim") as prof:
        with cuptiprof.region("capture"):
            replay = torch_graph() if on_gpu else simulated_graph()
        with cuptiprof.region("decode"):
            for _ in range(TOKENS):
                replay()
    result = prof.result()
    print(result.report("captures"))
    kernels = result.kernels.where(result.kernels["capture_known"] != 0)
    print(
        f"{len(kernels)} kernels of {TOKENS} launches in {set(kernels['region'])}, each with the layer that captured it"
    )


if __name__ == "__main__":
    main()
