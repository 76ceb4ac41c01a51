"""GPU time as a tree of what launched it (regions, modules, Python frames or operators), down to the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.trees.flame import NO_STACK, StackBy, flame_stacks
from cuptiprof.data.python_stacks import Frame
from cuptiprof.data.result import Result

MOST_NODES = 20_000
"""of a tree, beyond which the lightest are left out"""


@dataclass(frozen=True)
class FlameTree:
    """One entry a node, what lies in one after it, heavier siblings first. With several GPUs each is a root.

    Attributes:
        names: of regions, modules, frames or operators; of the innermost nodes the kernel, copy or set.
        depth: how many are around.
        total: time on the GPU with what lies in it, ns.
        is_work: it is a kernel, copy or set.
        left_out: nodes that were too light to be kept.
    """

    names: list[str]
    depth: Int64
    total: Int64
    is_work: list[bool]
    left_out: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def whole(self) -> int:
        """Time of everything, ns."""
        return int(self.total[self.depth == 0].sum())


def flame_tree(result: Result, by: StackBy, most: int = MOST_NODES) -> FlameTree | None:
    """The tree of all GPU work of a run; None where nothing says what launched any of it.

    Args:
        most: nodes; the heaviest are kept. What is around one is never lighter.
    """
    by_gpu = flame_stacks(result, by)
    if not any(stack.frames for stacks in by_gpu.values() for stack in stacks):
        return None
    grown = _Growing()
    for device, stacks in by_gpu.items():
        root = grown.child(-1, f"GPU {device}") if len(by_gpu) > 1 else -1
        for stack in stacks:
            node = root
            for name in map(_frame_name, stack.frames):
                node = grown.child(node, name)
            if not stack.frames:
                node = grown.child(node, NO_STACK[by])
            grown.total[grown.child(node, stack.work, True)] += stack.ns
    return grown.tree(most)


def _frame_name(frame: Frame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})" if frame.file else frame.function


class _Growing:
    """Nodes in the order in which they came: a parent has a smaller number than what lies in it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parent: list[int] = []
        self.total: list[int] = []
        self.is_work: list[bool] = []
        self._known: dict[tuple[int, str, bool], int] = {}

    def child(self, parent: int, name: str, is_work: bool = False) -> int:
        key = parent, name, is_work
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = len(self.names)
            self.names.append(name)
            self.parent.append(parent)
            self.total.append(0)
            self.is_work.append(is_work)
        return node

    def tree(self, most: int) -> FlameTree:
        for node in range(len(self.names) - 1, -1, -1):
            if (outer := self.parent[node]) >= 0:
                self.total[outer] += self.total[node]
        heaviest = np.argsort(-np.array(self.total, np.int64), kind="stable")  # of equal ones a parent comes first
        below: dict[int, list[int]] = {}
        for node in heaviest[:most].tolist():
            below.setdefault(self.parent[node], []).append(node)
        order, depth = [], []
        open_ = [(node, 0) for node in reversed(below.get(-1, []))]
        while open_:
            node, deep = open_.pop()
            order.append(node)
            depth.append(deep)
            open_ += [(inner, deep + 1) for inner in reversed(below.get(node, []))]
        return FlameTree(
            names=[self.names[node] for node in order],
            depth=np.array(depth, np.int64),
            total=np.array([self.total[node] for node in order], np.int64),
            is_work=[self.is_work[node] for node in order],
            left_out=len(self.names) - len(order),
        )
