"""Where in the Python program operators were called, as torch.profiler says it."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.analysis.host_tree import BACKWARD_SCOPE, HostKind, HostTree
from cuptiprof.analysis.kernel_counters import match
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result

Frames = tuple[str, ...]
_SIMULATION = ("/cuptiprof/sim/", "/torch/_dynamo/eval_frame.py", "/torch/_compile.py")
"""Files of the simulated device, and those by which torch calls it."""


def operator_stacks(result: Result, tree: HostTree) -> Int64:
    """Number of the stack of each place, 0: none. What a node of backward calls stands where its forward operator was called.

    Of an operator whose own is not known it is that of what it launched: Python stands still meanwhile.
    """
    own = tree.column(result, "stack")
    known = np.where(own > 0, own, _of_launches(result, tree))
    if not known.any():
        return known
    made = match(tree.column(result, "forward", -1), result.operators["instance"])
    place = np.where(made >= 0, tree.instance_place[0][made], -1)
    forward = np.where(place >= 0, known[place], 0)
    # The innermost node around each place, itself included: outwards by doubling steps until one is reached.
    around = np.where(tree.column(result, "scope") == BACKWARD_SCOPE, np.arange(len(tree)), tree.nesting.parent)
    while True:
        further = np.where(around >= 0, around[np.maximum(around, 0)], -1)
        if np.array_equal(further, around):
            break
        around = further
    return np.where(around >= 0, forward[np.maximum(around, 0)], known)


def _of_launches(result: Result, tree: HostTree) -> Int64:
    """The stack of the first launch inside each operator; 0: none of those is known."""
    at = np.zeros(len(tree), np.int64)
    for name in ("memsets", "memcpys", "kernels"):
        work = result.tables[name]
        place, stack = tree.places(result, work), work.codes("stack").astype(np.int64)
        some = (place >= 0) & (stack > 0)
        at[place[some]] = stack[some]
    places = np.flatnonzero(at)
    first = np.searchsorted(places, np.arange(len(tree)))
    inside = first < len(places)
    next_ = np.where(inside, places[np.minimum(first, len(places) - 1)] if len(places) else -1, -1)
    is_operator = (tree.kind == HostKind.OPERATOR) & ~tree.is_annotation
    return (
        np.where(is_operator & inside & (next_ < tree.nesting.after), at[np.maximum(next_, 0)], 0) if len(tree) else at
    )


def frame_texts(result: Result, stacks: Int64) -> dict[int, Frames]:
    """Each of these stacks as torch.profiler writes it: ``train.py(12): step``, the innermost frame first; without the frames
    of the simulated device, which no program has on a GPU."""
    known = result.python_stacks()
    used, _ = renumbered(stacks)
    out = {}
    for number in used.tolist():
        frames = known.frames(number)
        simulated = any(_SIMULATION[0] in frame.file for frame in frames)
        shown = [f for f in frames if not (simulated and any(part in f.file for part in _SIMULATION))]
        out[number] = tuple(f"{frame.file}({frame.line}): {frame.function}" for frame in shown)
    return out
