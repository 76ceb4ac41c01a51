"""What a GPU runs for operators over lists of tensors (``_foreach_*``, ``_fused_*``), and for optimizer steps.

On a GPU torch's optimizers use those operators by default, on the CPU they go over the parameters one by one. The model
puts the CPU's operators of one step together again, so that a step costs the launches that it costs on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof.sim.pytorch.calls import Array, Call
from cuptiprof.sim.pytorch.launches import KernelWork, Work, grid, kernel_name

_CHUNK = 65536  # elements a block, multi_tensor_apply.cuh: kChunkSize
_MAX_BLOCKS = 320  # a launch: depth_to_max_blocks
_MAX_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # a launch, by number of lists: depth_to_max_tensors
_FUSED_OPERATIONS = 15  # an element, of a fused optimizer (Adam's)


def _launches(op: str, sizes: Sequence[int], dtype: str, depth: int, moved: float) -> list[Work]:
    """The launches of multi_tensor_apply over `depth` lists of tensors of `sizes` elements, each taken to hold as much."""
    blocks = sum(-(-size // _CHUNK) for size in sizes)
    if not blocks:
        return []
    count = max(-(-len(sizes) // _MAX_TENSORS[depth]), -(-blocks // _MAX_BLOCKS))
    operations = (_FUSED_OPERATIONS if op.startswith("_fused_") else 1) * sum(sizes) / count
    name = kernel_name("multi_tensor_apply_kernel", op, dtype)
    return [KernelWork(name, grid(blocks, count), (512, 1, 1), 48, operations=operations, moved=moved / count)] * count


def list_launches(call: Call) -> list[Work]:
    """`_foreach_add_`, `_fused_adamw_`, ..."""
    lists = [a for a in call.args if isinstance(a, (list, tuple)) and a and all(isinstance(x, Array) for x in a)]
    lists = [arrays for arrays in lists if any(a.shape for a in arrays)]
    if not lists:
        return []
    new = not (call.op.endswith("_") or call.op.endswith("norm"))
    # In place the first list is written again; the fused optimizers write all but the gradients.
    written = len(lists) - 1 if call.op.startswith("_fused_") else 0 if call.op.endswith("norm") else 1
    moved = sum(a.bytes for arrays in lists for a in arrays) + written * sum(a.bytes for a in lists[0])
    return _launches(call.op, [a.numel for a in lists[0]], lists[0][0].dtype, min(5, len(lists) + new), moved)


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
        alike = period and all(c.op == calls[i % period].op for i, c in enumerate(calls))
        groups: dict[tuple[object, str], list[Call]] = {}
        for i, c in enumerate(calls):  # where parameters were not all treated alike: one group an operator
            groups.setdefault((i % period if alike else c.op, c.out.dtype), []).append(c)
        work: list[Work] = []
        for (_, dtype), same in groups.items():
            tensors = sum(1 for a in same[0].inputs if a.shape) + (not same[0].op.endswith("_"))
            moved = sum(c.moved for c in same)
            work += _launches(same[0].op, [c.out.numel for c in same], dtype, max(1, min(4, tensors)), moved)
        return work
