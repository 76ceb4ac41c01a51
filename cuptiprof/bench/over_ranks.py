"""Measuring on all ranks of torch.distributed at once: a step takes as long as the rank that is last.

Every decision of the harness that says how often the function is called (warm-up, batch, blocks, when to stop) is made from numbers
that all ranks have in common: a function that communicates would wait for ever for a rank that does not call it. nccl-tests, Megatron
and flashinfer report the longest of the ranks too.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from cuptiprof.bench.results.parts import Float64
from cuptiprof.errors import BenchError


class Ranks:
    """This process alone."""

    size = 1
    rank = 0

    def largest(self, value: float) -> float:
        """Of all ranks; each calls it at the same place."""
        return value

    def largest_each(self, values: Float64) -> Float64:
        """Element by element, shape (n,)."""
        return values

    def notes(self) -> list[str]:
        return []


class TorchRanks(Ranks):
    """The ranks of torch.distributed's default group. What they agree on goes through the host (gloo): the GPU is left alone."""

    def __init__(self) -> None:
        torch: Any = sys.modules.get("torch")
        if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
            raise BenchError(
                "over_ranks= needs torch.distributed, which this program has not initialised",
                hint="torch.distributed.init_process_group(), in each process that torchrun starts",
            )
        self._torch = torch
        self.size, self.rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
        self._group = _host_group(torch.distributed)

    def largest(self, value: float) -> float:
        return float(self.largest_each(np.array([value]))[0])

    def largest_each(self, values: Float64) -> Float64:
        shared = self._torch.tensor(values.tolist(), dtype=self._torch.float64)
        self._torch.distributed.all_reduce(shared, self._torch.distributed.ReduceOp.MAX, group=self._group)
        return np.array(shared.tolist(), np.float64)

    def notes(self) -> list[str]:
        return [
            f"each sample is the longest of {self.size} ranks; kernels, clocks and counters are those of rank {self.rank}"
        ]


_groups: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _host_group(distributed: Any) -> Any:
    """A group of all ranks that talks through the host, made once for each default group."""
    world = distributed.group.WORLD
    if world not in _groups:
        if not distributed.is_gloo_available():
            raise BenchError("over_ranks= needs gloo, which this PyTorch was built without")
        _groups[world] = world if distributed.get_backend() == "gloo" else distributed.new_group(backend="gloo")
    return _groups[world]
