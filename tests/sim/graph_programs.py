"""Programs that make, change, launch and destroy CUDA graphs inside regions, with their own account of what each kernel is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.sim.sim_device import DRIVER, Flag, Op, SimDevice

Work = tuple[str, str, str]
"""Kernel, region path at the launch, region path where its node was captured."""
STREAM = 70


@dataclass
class Node:
    """What a node does and where it was captured; or, with `inside`, a child graph."""

    kernel: str = ""
    site: str = ""
    inside: list[Node] = field(default_factory=list)

    def copy(self) -> Node:
        return Node(self.kernel, self.site, [node.copy() for node in self.inside])

    def shape(self) -> object:
        return tuple(node.shape() for node in self.inside) if self.inside else None

    def work(self) -> list[Node]:
        return [w for node in self.inside for w in node.work()] if self.inside else [self]


@dataclass
class Executable:
    template: int
    nodes: list[Node]


class GraphProgram:
    """Each of the `actions` is one call or a few; what is not possible (an update by a graph of other nodes) is left out."""

    def __init__(self, sim: SimDevice, seed: int) -> None:
        self.random = random.Random(seed)
        self.expected: Counter[Work] = Counter()
        self.launches = 0
        self._sim = sim
        self._graphs: dict[int, list[Node]] = {}
        self._executables: dict[int, Executable] = {}
        self._numbers = 0
        self._path: list[str] = []
        self._stack = ExitStack()
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (4, self._enter),
            (3, self._leave),
            (4, self._capture),
            (2, self._by_hand),
            (2, self._child),
            (2, self._clone),
            (4, self._instantiate),
            (3, self._update),
            (2, self._set_node),
            (1, self._destroy_node),
            (1, self._destroy_graph),
            (1, self._destroy_executable),
            (8, self._launch),
            (1, self._plain),
        ]

    def run(self, steps: int) -> None:
        weights = [weight for weight, _ in self._actions]
        with self._stack:
            for _ in range(steps):
                self.random.choices(self._actions, weights)[0][1]()
            self._path.clear()

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _here(self) -> str:
        return "/".join(self._path)

    def _any(self, numbers: dict[int, object]) -> int:
        return self.random.choice(sorted(numbers)) if numbers else 0

    def _node(self) -> Node:
        return Node(f"k{self._number()}", self._here())

    def _call(self, op: Op, **fields: int) -> None:
        self._sim.call(op, **fields, domain=self.random.choice((DRIVER, 2)))

    def _enter(self) -> None:
        if len(self._path) < 4:
            name = self.random.choice("abcde")
            self._stack.enter_context(cuptiprof.region(name))
            self._path.append(name)

    def _leave(self) -> None:
        inner = self._stack.pop_all()
        kept = self._path[: self.random.randint(0, len(self._path))]
        inner.close()
        self._path.clear()
        for name in kept:
            self._stack.enter_context(cuptiprof.region(name))
            self._path.append(name)

    def _capture(self) -> None:
        graph, nodes = self._number(), []
        self._call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=STREAM)
        for _ in range(self.random.randint(1, 4)):
            with ExitStack() as inner:
                for name in self.random.choices("xyz", k=self.random.randint(0, 2)):
                    inner.enter_context(cuptiprof.region(name))
                    self._path.append(name)
                for _ in range(self.random.randint(0, 3)):
                    nodes.append(self._node())
                    self._sim.launch(nodes[-1].kernel, stream=STREAM)
                del self._path[len(self._path) - self._depth_of(inner) :]
        self._call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=STREAM)
        self._graphs[graph] = nodes

    @staticmethod
    def _depth_of(stack: ExitStack) -> int:
        return len(stack._exit_callbacks)  # type: ignore[attr-defined]

    def _by_hand(self) -> None:
        graph = self._any(self._graphs)
        if not graph or self.random.random() < 0.3:
            graph = self._number()
            self._call(Op.GRAPH_CREATE, graph_id=graph)
            self._graphs[graph] = []
        node = self._node()
        self._sim.launch(node.kernel, graph_id=graph, flags=Flag.ADD_NODE)
        self._graphs[graph].append(node)

    def _child(self) -> None:
        graph, child = self._any(self._graphs), self._any(self._graphs)
        if graph != child and self._graphs[child] and len(self._graphs[child]) < 40:
            self._call(Op.GRAPH_ADD_CHILD, graph_id=graph, value=child)
            self._graphs[graph].append(Node(inside=[node.copy() for node in self._graphs[child]]))

    def _clone(self) -> None:
        if original := self._any(self._graphs):
            clone = self._number()
            self._call(Op.GRAPH_CLONE, graph_id=clone, value=original)
            self._graphs[clone] = [node.copy() for node in self._graphs[original]]

    def _instantiate(self) -> None:
        if graph := self._any(self._graphs):
            executable = self._number()
            self._call(Op.GRAPH_INSTANTIATE, graph_id=graph, value=executable)
            self._executables[executable] = Executable(graph, [node.copy() for node in self._graphs[graph]])

    def _update(self) -> None:
        executable = self._any(self._executables)
        if not executable:
            return
        shape = Node(inside=self._executables[executable].nodes).shape()
        fitting = {g: n for g, n in self._graphs.items() if n and Node(inside=n).shape() == shape}
        if graph := self._any(fitting):
            self._call(Op.GRAPH_EXEC_UPDATE, graph_id=executable, value=graph)
            # A node that is set by one of the first template's afterwards would be that one's again, but only to a CUPTI that
            # says so (13.4).
            self._executables[executable] = Executable(0, [node.copy() for node in self._graphs[graph]])

    def _set_node(self) -> None:
        executable = self._any(self._executables)
        template = self._graphs.get(self._executables[executable].template) if executable else None
        nodes = self._executables[executable].nodes if executable else []
        if not template or len(template) < len(nodes) or not nodes:
            return
        index = self.random.randrange(len(nodes))
        if nodes[index].inside or template[index].inside:
            return
        kernel = f"k{self._number()}"
        self._sim.call(Op.GRAPH_EXEC_SET_NODE, graph_id=executable, value=index, name=kernel)
        nodes[index] = Node(kernel, nodes[index].site)

    def _destroy_node(self) -> None:
        if (graph := self._any(self._graphs)) and (nodes := self._graphs[graph]):
            index = self.random.randrange(len(nodes))
            self._call(Op.GRAPH_DESTROY_NODE, graph_id=graph, value=index)
            del nodes[index]
            # Its place is another node's now: executable ones are no longer what they were made from.
            for executable in self._executables.values():
                executable.template = 0 if executable.template == graph else executable.template

    def _destroy_graph(self) -> None:
        if graph := self._any(self._graphs):
            self._call(Op.GRAPH_DESTROY, graph_id=graph)
            del self._graphs[graph]

    def _destroy_executable(self) -> None:
        if executable := self._any(self._executables):
            self._call(Op.GRAPH_EXEC_DESTROY, graph_id=executable)
            del self._executables[executable]

    def _launch(self) -> None:
        if executable := self._any(self._executables):
            times = self.random.choice((1, 1, 2, 20))
            self._sim.run(self._sim.ops(times, Op.GRAPH_LAUNCH, graph_id=executable, stream=3))
            self.launches += times
            for node in Node(inside=self._executables[executable].nodes).work():
                if node.kernel:
                    self.expected[node.kernel, self._here(), node.site] += times

    def _plain(self) -> None:
        self._sim.launch("plain")
        self.expected["plain", self._here(), ""] += 1


def work_of(result: Result) -> Counter[Work]:
    """What the result says that each kernel is. Kernels of graphs of which nobody knows the capture have ``?`` there."""
    table = result.kernels
    captured = [
        site if known else ("?" if node else "")
        for site, known, node in zip(
            table["capture_region"], table["capture_known"], table["graph_node_id"], strict=True
        )
    ]
    return Counter(zip(table["name"], table["region"], captured, strict=True))
