"""Where in the Python program, and in which module, operators were called."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.trees.host_tree import BACKWARD_SCOPE, HostKind, HostTree
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array

Frames = tuple[str, ...]
_SIMULATION = ("/cuptiprof/sim/", "/torch/_dynamo/eval_frame.py", "/torch/_compile.py")
"""Files of the simulated device, and those by which torch calls it."""


def operator_origins(result: Result, tree: HostTree, column: str) -> Int64:
    """ "stack" (its number) or "module" (its string index) of each place; 0: not known. What a node of backward calls has its
    forward operator's.

    Of an operator whose own is not known it is that of the first that it launched, or of the operator that called it: Python stands
    still meanwhile.
    """
    own = tree.column(result, column)
    known = np.where(own > 0, own, _of_launches(result, tree, column))
    if not known.any():
        return known
    is_operator = (tree.kind == HostKind.OPERATOR) & ~tree.is_annotation
    known = _from_around(tree, known, known > 0, is_operator)
    made = match(tree.column(result, "forward", -1), result.operators["instance"])
    place = np.where(made >= 0, tree.instance_place[0][made], -1)
    forward = np.where(place >= 0, known[place], 0)
    is_node = tree.column(result, "scope") == BACKWARD_SCOPE
    everything = np.ones(len(tree), bool)  # CUDA calls, too
    within = _from_around(tree, np.ones(len(tree), np.int64), is_node, everything) > 0
    return np.where(within, _from_around(tree, forward, is_node, everything), known)


def _from_around(tree: HostTree, value: Int64, has: Array, inherits: Array) -> Int64:
    """The value of the innermost place around each, itself included, that `has` one; of those that do not inherit their own."""
    around = np.where(has | ~inherits, np.arange(len(tree)), tree.nesting.parent)
    while True:  # outwards by doubling steps
        further = np.where(around >= 0, around[np.maximum(around, 0)], -1)
        if np.array_equal(further, around):
            break
        around = further
    return np.where(
        (around >= 0) & has[np.maximum(around, 0)], value[np.maximum(around, 0)], np.where(inherits, 0, value)
    )


def _of_launches(result: Result, tree: HostTree, column: str) -> Int64:
    """That of the first launch inside each operator; 0: none of those is known."""
    at = np.zeros(len(tree), np.int64)
    for name in ("memsets", "memcpys", "kernels"):
        work = result.tables[name]
        place, value = tree.places(result, work), work.codes(column).astype(np.int64)
        some = (place >= 0) & (value > 0)
        at[place[some]] = value[some]
    places = np.flatnonzero(at)
    if not len(places):
        return at
    first = np.searchsorted(places, np.arange(len(tree)))
    next_ = places[np.minimum(first, len(places) - 1)]
    inside = (first < len(places)) & (next_ < tree.nesting.after)
    is_operator = (tree.kind == HostKind.OPERATOR) & ~tree.is_annotation
    return np.where(is_operator & inside, at[next_], 0)


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
