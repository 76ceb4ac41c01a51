"""GPU time by the stack of Python frames that launched it, down to the kernel: what flame graphs are drawn from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.aggregate import sum_by_group
from cuptiprof.analysis.gpu_work import NameIds, kernel_names, memcpy_names
from cuptiprof.data.python_stacks import Frame
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array

NO_STACK = "(no Python code)"


@dataclass(frozen=True)
class FlameStack:
    """One path of a flame graph.

    Attributes:
        frames: from the outermost; empty: no Python code launched it.
        work: name of the kernel, copy or set.
        ns: their durations on the GPU, added up.
    """

    frames: tuple[Frame, ...]
    work: str
    ns: int


def flame_stacks(result: Result) -> dict[int, list[FlameStack]]:
    """By GPU, each stack with each kernel it launched, once; in the order in which they came."""
    stacks = result.python_stacks()
    times: dict[int, Counter[tuple[int, str]]] = {}
    for table, (ids, names) in (
        (result.kernels, _split(kernel_names(result.kernels, True))),
        (result.memcpys, _split(memcpy_names(result.memcpys))),
        (result.memsets, (np.zeros(len(result.memsets), np.int64), ["[CUDA memset]"])),
    ):
        if not len(table):
            continue
        # One number for GPU, stack and name: rows of three would be sorted as rows.
        from_stack, kinds = table.codes("stack").astype(np.int64), len(names)
        span = (int(from_stack.max()) + 1) * kinds
        keys, first, which = np.unique(
            table["device"].astype(np.int64) * span + from_stack * kinds + ids, return_index=True, return_inverse=True
        )
        sums = sum_by_group(which, table["end"], len(keys), table["start"])
        for at in np.argsort(first).tolist():
            device, rest = divmod(int(keys[at]), span)
            launched_from, name = divmod(rest, kinds)
            times.setdefault(device, Counter())[launched_from, names[name]] += int(sums[at])
    known: dict[int, tuple[Frame, ...]] = {}
    for stack in {stack for of in times.values() for stack, _ in of}:
        known[stack] = tuple(reversed(stacks.frames(stack)))
    return {
        device: [FlameStack(known[stack], work, ns) for (stack, work), ns in of.items()]
        for device, of in sorted(times.items())
    }


def _split(ids: NameIds) -> tuple[Array, list[str]]:
    return ids.ids.astype(np.int64), list(ids.names)
