"""What a GPU runs for operators over lists of tensors (``_foreach_*``, ``_fused_*``), and for optimizer steps.

On a GPU torch's optimizers use those operators by default, on the CPU they go over the parameters one by one. The model
puts the CPU's operators of one step together again, so that a step costs the launches that it costs on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof.sim import torch_names as names
from cuptiprof.sim.torch_work import Array, Call, Kernel, Work

_CHUNK = 65536  # elements a block, multi_tensor_apply.cuh: kChunkSize
_MAX_BLOCKS = 320  # a launch: depth_to_max_blocks
_MAX_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # a launch, by number of lists: depth_to_max_tensors
_OPERATIONS = {"adam": 14, "adamw": 15, "sgd": 6, "adagrad": 8, "norm": 2}  # an element; others: one


def launches(op: str, sizes: Sequence[int], dtype: str, depth: int, moved: float, *, in_place: bool) -> list[Work]:
    """The launches of multi_tensor_apply over tensors of `sizes` elements: as many tensors and blocks as fit in each."""
    name = names.multi_tensor(op, dtype, depth, in_place=in_place)
    total = sum(sizes)
    work: list[Work] = []
    tensors = chunks = elements = 0

    def launch() -> None:
        nonlocal tensors, chunks, elements
        if chunks:
            share = elements / total
            operations = elements * _OPERATIONS.get(op, 1)
            work.append(Kernel(name, (chunks, 1, 1), (512, 1, 1), 48, operations=operations, moved=moved * share))
        tensors = chunks = elements = 0

    for size in sizes:
        if tensors == _MAX_TENSORS[depth]:
            launch()
        tensors += 1
        while size > 0:
            if chunks == _MAX_BLOCKS:
                launch()
                tensors = 1
            chunks += 1
            elements += min(size, _CHUNK)
            size -= _CHUNK
    launch()
    return work


def _lists(call: Call) -> list[list[Array]]:
    found = [list(a) for a in call.args if isinstance(a, (list, tuple)) and a and all(isinstance(x, Array) for x in a)]
    return [lst for lst in found if any(a.shape for a in lst)]


def plan_list(call: Call) -> list[Work]:
    """`_foreach_add_`, `_fused_adamw_`, ..."""
    lists = _lists(call)
    if not lists:
        return []
    op = call.op.removeprefix("_foreach_").removeprefix("_fused_")
    in_place = op.endswith("_")
    op = op.rstrip("_")
    depth = min(5, len(lists) + (0 if in_place or op == "norm" else 1))
    sizes = [a.numel for a in lists[0]]
    # In place the first list is written again; the fused optimizers write all but the gradients.
    written = len(lists) - 1 if call.op.startswith("_fused_") else 1
    moved = sum(a.bytes for lst in lists for a in lst) + (
        0 if op == "norm" else written * sum(a.bytes for a in lists[0])
    )
    work = launches(op, sizes, lists[0][0].dtype, depth, moved, in_place=in_place)
    if op == "norm":
        t = names.ctype(lists[0][0].dtype)
        name = f"void at::native::lpnorm_cleanup<{t}, (at::native::NormType)1, {t}, {names.acctype(lists[0][0].dtype)}>({names.acctype(lists[0][0].dtype)} const*, at::native::TensorListAddresses, int)"
        work.append(Kernel(name, (len(sizes), 1, 1), (512, 1, 1), 24, 2048, moved=4 * _MAX_BLOCKS * len(sizes)))
    return work


class OptimizerStep:
    """The element-wise operators of one optimizer step, to be launched together at its end."""

    def __init__(self, parameters: int) -> None:
        self._parameters = parameters
        self._calls: list[Call] = []

    def add(self, call: Call) -> None:
        """One operator over one parameter (or its state)."""
        self._calls.append(call)

    def work(self) -> list[Work]:
        """The launches: one list operator for each that every parameter went through, in order."""
        calls, count = self._calls, self._parameters
        period = len(calls) // count if count and len(calls) % count == 0 else 0
        if period and all(c.op == calls[i % period].op for i, c in enumerate(calls)):
            groups = [calls[i::period] for i in range(period)]
        else:  # parameters were not all treated alike: one group an operator
            by_op: dict[str, list[Call]] = {}
            for c in calls:
                by_op.setdefault(c.op, []).append(c)
            groups = list(by_op.values())
        out: list[Work] = []
        for group in groups:
            by_dtype: dict[str, list[Call]] = {}
            for c in group:
                by_dtype.setdefault(c.out.dtype, []).append(c)
            for dtype, same in by_dtype.items():
                in_place = same[0].op.endswith("_")
                tensors = sum(1 for a in same[0].inputs if a.shape)
                depth = max(1, min(4, tensors + (0 if in_place else 1)))
                sizes = [c.out.numel for c in same]
                out += launches(
                    same[0].op.rstrip("_"), sizes, dtype, depth, sum(c.moved for c in same), in_place=in_place
                )
        return out
