"""CUDA graphs: what CUPTI tells of nodes that are captured, copied, updated and destroyed, in which order and within which call."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import LAUNCH_CBIDS, RawApi
from cuptiprof.device.driver import Driver

DRIVER, RESOURCE = 1, 3  # CUpti_CallbackDomain
# CUpti_CallbackIdResource: those that the collector asks for, and those told beside them.
TOLD = {
    9: "graph created",
    10: "graph destroyed",
    11: "graph cloned",
    13: "node created",
    14: "node destroyed",
    17: "executable begins",
    18: "executable created",
    19: "executable destroyed",
    20: "node cloned",
    22: "node updated",
}
RELAXED = 2  # CUstreamCaptureMode
KERNELS = 2


class _GraphData(ctypes.Structure):
    """CUpti_GraphData."""

    _fields_ = [
        ("graph", ctypes.c_void_p),
        ("original_graph", ctypes.c_void_p),
        ("node", ctypes.c_void_p),
        ("original_node", ctypes.c_void_p),
        ("type", ctypes.c_int),
        ("dependency", ctypes.c_void_p),
        ("executable", ctypes.c_void_p),
    ]


class _ResourceData(ctypes.Structure):
    """CUpti_ResourceData."""

    _fields_ = [("context", ctypes.c_void_p), ("handle", ctypes.c_void_p), ("described", ctypes.POINTER(_GraphData))]


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)


class Narrator:
    """Writes down what the resource callbacks say, with the names of nodes that it gives them in the order they are met."""

    def __init__(self, api: RawApi) -> None:
        self._lib = api.lib
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._inside = 0
        self._callback = _Callback(self._called)
        self._subscriber = ctypes.c_void_p()

    def _name(self, node: int | None) -> str:
        if not node:
            return "none"
        number = ctypes.c_uint64()
        code = self._lib.cuptiGetGraphNodeId(ctypes.c_void_p(node), ctypes.byref(number))
        return self._names.setdefault(number.value, f"n{len(self._names)}") if code == 0 else f"error {code}"

    def _called(self, user: Any, domain: int, cbid: int, data: Any) -> None:
        if domain == DRIVER:
            site = ctypes.cast(data, ctypes.POINTER(ctypes.c_int)).contents.value
            self._inside += 1 if site == 0 else -1
            return
        if cbid not in TOLD:
            return
        described = ctypes.cast(data, ctypes.POINTER(_ResourceData)).contents.described
        line = TOLD[cbid]
        if described:
            graph = described.contents
            if line.startswith("node"):
                line += f" {self._name(graph.node)}"
            if graph.original_node:
                line += f" from {self._name(graph.original_node)}"
        self._lines.append(line + (" in a launch" if self._inside else ""))

    def told(self, do: Callable[[], object]) -> list[str]:
        """What is told while it is done."""
        self._lines = []
        do()
        return self._lines

    def __enter__(self) -> Narrator:
        code = self._lib.cuptiSubscribe(ctypes.byref(self._subscriber), self._callback, None)
        if code != 0:
            raise RuntimeError(f"cuptiSubscribe returned {code}")
        for cbid in TOLD:
            self._lib.cuptiEnableCallback(1, self._subscriber, RESOURCE, cbid)  # 22 only from CUDA 13.0 on
        for cbid in LAUNCH_CBIDS:
            self._lib.cuptiEnableCallback(1, self._subscriber, DRIVER, cbid)
        return self

    def __exit__(self, *error: object) -> None:
        self._lib.cuptiUnsubscribe(self._subscriber)


class SimulatedGraphs:
    """Two graphs of two kernels each on the stand-in."""

    STREAM, A, B, CLONE, EXECUTABLE = 41, 5, 6, 7, 8

    def __init__(self) -> None:
        from cuptiprof.sim.sim_device import Op, SimDevice

        self._op, self._sim = Op, SimDevice()

    def capture(self, graph: int) -> None:
        self._sim.call(self._op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=self.STREAM)
        for i in range(KERNELS):
            with cuptiprof.region(f"kernel {i}"):
                self._sim.launch(f"_Z4node{i}v", stream=self.STREAM)
        self._sim.call(self._op.GRAPH_END_CAPTURE, graph_id=graph, stream=self.STREAM)

    def capture_a(self) -> None:
        self.capture(self.A)

    def capture_b(self) -> None:
        self.capture(self.B)

    def clone(self) -> None:
        self._sim.call(self._op.GRAPH_CLONE, graph_id=self.CLONE, value=self.A)

    def instantiate(self) -> None:
        self._sim.call(self._op.GRAPH_INSTANTIATE, graph_id=self.CLONE, value=self.EXECUTABLE)

    def launch(self) -> None:
        self._sim.call(self._op.GRAPH_LAUNCH, graph_id=self.EXECUTABLE, stream=self.STREAM)
        self._sim.synchronize()

    def update(self) -> None:
        self._sim.call(self._op.GRAPH_EXEC_UPDATE, graph_id=self.EXECUTABLE, value=self.B)

    def destroy(self) -> None:
        self._sim.call(self._op.GRAPH_EXEC_DESTROY, graph_id=self.EXECUTABLE)
        for graph in (self.CLONE, self.B, self.A):
            self._sim.call(self._op.GRAPH_DESTROY, graph_id=graph)


class GraphsOfDriver:
    """The same on a GPU: kernels of torch, graphs by the driver's own calls."""

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        self._driver = Driver()
        self._x = torch.ones(1 << 12, device="cuda")
        self._stream = torch.cuda.Stream()
        with torch.cuda.stream(self._stream):
            self._x.add_(1).mul_(2)
        torch.cuda.synchronize()
        self._a, self._b, self._clone, self._executable = (ctypes.c_void_p() for _ in range(4))

    def capture(self, graph: ctypes.c_void_p) -> None:
        stream = ctypes.c_void_p(self._stream.cuda_stream)
        with self._torch.cuda.stream(self._stream):
            self._driver.call("cuStreamBeginCapture_v2", stream, RELAXED)
            for i, work in enumerate((lambda: self._x.add_(1), lambda: self._x.mul_(1))):
                with cuptiprof.region(f"kernel {i}"):
                    work()
            self._driver.call("cuStreamEndCapture", stream, ctypes.byref(graph))

    def capture_a(self) -> None:
        self.capture(self._a)

    def capture_b(self) -> None:
        self.capture(self._b)

    def clone(self) -> None:
        self._driver.call("cuGraphClone", ctypes.byref(self._clone), self._a)

    def instantiate(self) -> None:
        self._driver.call(
            "cuGraphInstantiateWithFlags", ctypes.byref(self._executable), self._clone, ctypes.c_uint64(0)
        )

    def launch(self) -> None:
        self._driver.call("cuGraphLaunch", self._executable, ctypes.c_void_p(self._stream.cuda_stream))
        self._torch.cuda.synchronize()

    def update(self) -> None:
        said = (ctypes.c_uint64 * 8)()  # CUgraphExecUpdateResultInfo is 24 bytes
        self._driver.call("cuGraphExecUpdate_v2", self._executable, self._b, ctypes.byref(said))

    def destroy(self) -> None:
        self._driver.call("cuGraphExecDestroy", self._executable)
        for graph in (self._clone, self._b, self._a):
            self._driver.call("cuGraphDestroy", graph)


def _graphs(work: Work) -> SimulatedGraphs | GraphsOfDriver:
    return GraphsOfDriver() if work.device == "cuda" else SimulatedGraphs()


def graph_node_callbacks(work: Work) -> dict[str, Any]:
    """What is told, in which order, when a graph of two kernels is captured, cloned, instantiated, launched, updated and destroyed?

    Assumed: a captured node is created within its launch; each copy is told as cloned from the node it is a copy of, within the two
    callbacks of an instantiation where it is one of those; an update tells each node with the one it was updated from.
    """
    graphs = _graphs(work)
    with Narrator(RawApi(work.device)) as narrator:
        told = {
            name: narrator.told(getattr(graphs, name))
            for name in ("capture_a", "capture_b", "clone", "instantiate", "launch", "update", "destroy")
        }
    created = [line for line in told["capture_a"] if line.startswith("node created")]
    captured = [line.split()[2] for line in created]
    clones = [line.split() for line in told["clone"] if line.startswith("node cloned")]
    copies = [line.split() for line in told["instantiate"] if line.startswith("node cloned")]
    updates = [line.split() for line in told["update"] if line.startswith("node updated")]
    between = [line for line in told["instantiate"] if line.startswith("executable")]
    return {
        "told": told,
        "as assumed": (
            len(created) == KERNELS
            and all(line.endswith("in a launch") for line in created)
            and [c[-1] for c in clones] == captured
            and [c[-1] for c in copies] == [c[2] for c in clones]
            and between == ["executable begins", "executable created"]
            and told["instantiate"][0] == between[0]
            and told["instantiate"][-1] == between[1]
            and len(updates) == KERNELS
        ),
    }


def capture_sites(work: Work) -> dict[str, Any]:
    """Have kernels of a graph, a clone of it and an executable graph that was updated the region where their nodes were captured?

    Assumed: yes, each of them, before and after the update, and what graphs were to do agrees with the records.
    """
    graphs = _graphs(work)
    with cuptiprof.profile(device=work.device, activities=["kernel"]) as prof:
        with cuptiprof.region("a"):
            graphs.capture_a()
        with cuptiprof.region("b"):
            graphs.capture_b()
        graphs.clone()
        graphs.instantiate()
        graphs.launch()
        graphs.update()
        graphs.launch()
        graphs.destroy()
    result = prof.result()
    sites = Counter(result.kernels["capture_region"].tolist())
    launches = result.metadata["launches"]
    return {
        "kernels by place of capture": dict(sites),
        "launches": {k: v for k, v in launches.items() if k.startswith("graph")},
        "losses": {name: count for name, count in dict(result.losses).items() if count},
        "as assumed": sites == {f"{graph}/kernel {i}": 1 for graph in "ab" for i in range(KERNELS)}
        and launches["graph_work"] == launches["graph_work_received"] == 2 * KERNELS,
    }


PROBES = [graph_node_callbacks, capture_sites]
