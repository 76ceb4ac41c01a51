"""Where in the Python program operators were called, as torch.profiler says it."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.analysis.host_tree import BACKWARD_SCOPE, HostTree
from cuptiprof.analysis.kernel_counters import match
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result

Frames = tuple[str, ...]


def operator_stacks(result: Result, tree: HostTree) -> Int64:
    """Number of the stack of each place, 0: none. What a node of backward calls stands where its forward operator was called."""
    own = tree.column(result, "stack")
    if not own.any():
        return own
    operators = result.operators
    made = match(tree.column(result, "forward", -1), operators["instance"])
    forward = np.where(made >= 0, operators.codes("stack")[np.maximum(made, 0)].astype(np.int64), 0)
    # The innermost node around each place, itself included: outwards by doubling steps until one is reached.
    places = np.arange(len(tree))
    around = np.where(tree.column(result, "scope") == BACKWARD_SCOPE, places, tree.nesting.parent)
    while True:
        further = np.where(around >= 0, around[np.maximum(around, 0)], -1)
        if np.array_equal(further, around):
            break
        around = further
    return np.where(around >= 0, forward[np.maximum(around, 0)], own)


def frame_texts(result: Result, stacks: Int64) -> dict[int, Frames]:
    """Each of these stacks as torch.profiler writes it: ``train.py(12): step``, the innermost frame first."""
    known = result.python_stacks()
    used, _ = renumbered(stacks)
    return {
        number: tuple(f"{frame.file}({frame.line}): {frame.function}" for frame in known.frames(number))
        for number in used.tolist()
    }
