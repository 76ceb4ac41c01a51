"""What an operator call looks like to the model: shapes, types and layouts. No torch is needed to ask about any."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cuptiprof.data.chips import Board

_ITEMSIZE = {
    "int16": 2, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8,
    "complex128": 16,
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
    def row(self) -> int:
        """Elements of the last dimension."""
        return self.shape[-1] if self.shape else 1

    @property
    def itemsize(self) -> int:
        return _ITEMSIZE.get(self.dtype, 1)

    @property
    def bytes(self) -> int:
        """What reading all of it moves: an expanded dimension (stride 0) is read once."""
        strides = self.strides or (1,) * len(self.shape)
        return math.prod(n for n, s in zip(self.shape, strides, strict=True) if s != 0 or n == 0) * self.itemsize

    @property
    def layout(self) -> tuple[int, ...]:
        """Strides of the dimensions that have more than one element."""
        strides = self.strides or tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        return tuple(s for s, n in zip(strides, self.shape, strict=True) if n != 1)

    @property
    def contiguous(self) -> bool:
        return self.layout == Array(self.shape).layout

    @property
    def dense(self) -> bool:
        """Its elements fill a piece of memory without gaps or overlap, in any order of dimensions."""
        expected = 1
        for stride, n in sorted(zip(self.layout, (n for n in self.shape if n != 1), strict=True)):
            if stride != expected:
                return False
            expected *= n
        return True


@dataclass(frozen=True)
class Call:
    """One operator call: arguments with :class:`Array` in place of tensors, and the results."""

    op: str  # without namespace and overload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[Array, ...]
    chip: Board
    pointwise: bool = False  # torch tags the operator so
    tf32: bool = False  # float32 products may use TF32
    cudnn_tf32: bool = True  # float32 convolutions may
    inputs: tuple[Array, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(_arrays((self.args, self.kwargs))))

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
        """Bytes: every input read once, every output written once."""
        return sum(a.bytes for a in (*self.inputs, *self.outputs))

    def argument(self, index: int, name: str, default: Any) -> Any:
        """An argument by position or name."""
        return self.args[index] if index < len(self.args) else self.kwargs.get(name, default)


def _arrays(value: Any) -> Iterator[Array]:
    """Every :class:`Array` in nested tuples, lists and dicts."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _arrays(v)
