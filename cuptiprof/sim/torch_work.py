"""What an operator call looks like to the model, and what the model answers: launches, copies, sets, waits.

Nothing here needs torch: the model can be asked about any shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cuptiprof.sim.roofline import Roofline

_ITEMSIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4,
    "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True)
class Array:
    """A tensor as the model sees it."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None  # None: contiguous

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return _ITEMSIZE.get(self.dtype, 1)

    @property
    def bytes(self) -> int:
        """What reading all of it moves: an expanded dimension (stride 0) is read once."""
        if self.strides is None:
            return self.numel * self.itemsize
        return math.prod(n for n, s in zip(self.shape, self.strides, strict=True) if s != 0 or n == 0) * self.itemsize

    @property
    def dense(self) -> bool:
        """Its elements fill a piece of memory without gaps or overlap, in any order of dimensions."""
        if self.strides is None:
            return True
        expected = 1
        for stride, n in sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n != 1):
            if stride != expected:
                return False
            expected *= n
        return True

    @property
    def layout(self) -> tuple[int, ...]:
        """Strides of the dimensions that have more than one element."""
        strides = self.strides
        if strides is None:
            strides = tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        return tuple(s for s, n in zip(strides, self.shape, strict=True) if n != 1)

    @property
    def contiguous(self) -> bool:
        return self.strides is None or self.layout == Array(self.shape).layout


@dataclass(frozen=True)
class Kernel:
    """One launch. Work is stated, not time: the roofline turns it into a duration.

    Attributes:
        operations: arithmetic operations; peak: their rate, operations/s (None: float32 outside of tensor cores).
        efficiency, access: keys of roofline.COMPUTE_EFFICIENCY and MEMORY_EFFICIENCY.
        moved: bytes from and to DRAM.
        whole_sm: a block takes an SM for itself, so grids that do not divide by the SMs leave some idle.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    static_shared: int = 0
    dynamic_shared: int = 0
    cluster: tuple[int, int, int] = (0, 0, 0)
    operations: float = 0.0
    peak: float | None = None
    efficiency: str = "other"
    moved: float = 0.0
    access: str = "stream"
    whole_sm: bool = False


@dataclass(frozen=True)
class Copy:
    """cudaMemcpyAsync; `kind` is "HtoD", "DtoH" or "DtoD"."""

    kind: str
    bytes: int


@dataclass(frozen=True)
class Set:
    """cudaMemsetAsync to 0."""

    bytes: int


@dataclass(frozen=True)
class Wait:
    """cudaStreamSynchronize."""


Work = Kernel | Copy | Set | Wait


@dataclass(frozen=True)
class Call:
    """One operator call: arguments with :class:`Array` in place of tensors, and the results."""

    op: str  # without namespace and overload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[Array, ...]
    chip: Roofline
    pointwise: bool = False  # torch tags the operator so
    tf32: bool = False  # float32 products may use TF32
    cudnn_tf32: bool = True  # float32 convolutions may
    inputs: tuple[Array, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(arrays((self.args, self.kwargs))))

    @property
    def main(self) -> Array:
        """The largest tensor: how much work there is (of a reduction, the input)."""
        return max((*self.outputs, *self.inputs), key=lambda a: a.numel)

    @property
    def out(self) -> Array:
        """The first result, else the first argument (operators that write in place and return nothing)."""
        return self.outputs[0] if self.outputs else self.inputs[0]

    @property
    def moved(self) -> int:
        """Every input read once, every output written once."""
        return sum(a.bytes for a in self.inputs) + sum(a.bytes for a in self.outputs)

    def argument(self, index: int, name: str, default: Any = None) -> Any:
        """An argument by position or name."""
        if index < len(self.args):
            return self.args[index]
        return self.kwargs.get(name, default)


def arrays(value: Any) -> Iterator[Array]:
    """Every :class:`Array` in nested tuples, lists and dicts."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from arrays(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from arrays(v)


Planner = Callable[[Call], list[Work]]
FAMILIES: dict[str, Planner] = {}
"""Operator -> what a GPU would run for it. Filled by the modules that import this one."""


def words(*texts: str) -> frozenset[str]:
    """The words of some texts: long lists of names stay readable."""
    return frozenset(word for text in texts for word in text.split())


def models(*operators: str) -> Callable[[Planner], Planner]:
    """Registers a planner for operators; each argument may hold several names."""

    def register(planner: Planner) -> Planner:
        FAMILIES.update(dict.fromkeys(words(*operators), planner))
        return planner

    return register


def blocks(count: int, per_block: int) -> tuple[int, int, int]:
    """A one-dimensional grid over `count` elements."""
    return (max(1, -(-count // per_block)), 1, 1)
