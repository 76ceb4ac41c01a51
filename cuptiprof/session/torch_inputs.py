"""Where PyTorch keeps the shapes and types of an operator's inputs: tried once, on tensors and calls of which these are known."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cuptiprof import _core

_WORD = 8
_LOOKED_AT = 168
"""bytes of a TensorImpl: fewer than any build's has"""
_SMALL, _LARGE = (3, 5, 7), (1, 2, 1, 3, 1, 2)
"""Five dimensions or fewer are in the tensor itself."""
_TYPES = {"float32": 6, "float64": 7, "int64": 4, "bool": 11, "bfloat16": 15, "uint8": 0}
"""c10::ScalarType"""


@dataclass(frozen=True)
class InputLayout:
    """Offsets in bytes, and tags of c10::IValue.

    Attributes:
        inputs: of a RecordFunction: pointer to the first IValue, and how many there are.
        sizes: of a TensorImpl: number of dimensions, then the sizes.
        type: of a TensorImpl: two bytes.
        tensor, list: tags.
        scalars: tags of numbers, a bit each.
    """

    inputs: int
    sizes: int
    type: int
    tensor: int
    list: int
    scalars: int


class UnknownInputs(Exception):
    """They are not where they were expected."""


def input_layout(torch: Any, path: str, inputs: int) -> InputLayout:
    """By a few tensors and operators of the calling thread; ``inputs``: where a RecordFunction should have them.

    Raises:
        UnknownInputs: they are elsewhere, or in several places.
    """

    def empty(size: tuple[int, ...], type_: str = "float32") -> Any:
        return torch.empty(size, dtype=getattr(torch, type_), device="cpu")

    small, large = empty(_SMALL), empty(_LARGE)
    typed = [(empty((1,), name), code) for name, code in _TYPES.items()]
    sizes = _sizes_at(_bytes_of(small), _bytes_of(large))
    types = [at for at in range(16, _LOOKED_AT - 2, 2) if all(_number(_bytes_of(t), at, 2) == c for t, c in typed)]
    if len(types) != 1:
        raise UnknownInputs(f"the type is in {len(types)} places of a tensor")
    x, number = torch.ones((2, 3), device="cpu"), torch.zeros(2, dtype=torch.complex64, device="cpu")
    _core.begin_operator_trial(path, inputs)
    try:
        torch.nn.functional.leaky_relu(x, 0.5)
        x.softmax(1)
        torch.cat([x, x], 1)
        x.sum(1, True)
        number.fill_(1j)
    finally:
        calls = _core.end_operator_trial(path)
    tensor, list_, scalars = tags_of((name, tags) for name, _, tags in calls)
    return InputLayout(inputs, sizes, types[0], tensor, list_, scalars)


def tags_of(calls: Iterable[tuple[bytes, list[int]]]) -> tuple[int, int, int]:
    """Tags of tensors and lists, and of numbers as bits, from the tags of what the operators above were given.

    Raises:
        UnknownInputs: one operator says other than another.
    """
    first: dict[bytes, list[int]] = {}
    for name, tags in calls:
        if name == b"aten::fill_":
            first[name] = tags  # the last one: ``sum`` fills, too
        else:
            first.setdefault(name, tags)
    try:
        tensor, real = first[b"aten::leaky_relu"]
        integer = first[b"aten::softmax"][1]
        list_ = first[b"aten::cat"][0]
        boolean = first[b"aten::sum"][2]
        complex_ = first[b"aten::fill_"][1]
        agreed = (
            first[b"aten::softmax"][0] == first[b"aten::sum"][0] == first[b"aten::fill_"][0] == tensor
            and first[b"aten::cat"][1] == integer
            and first[b"aten::sum"][1] == list_
        )
    except (KeyError, IndexError, ValueError):
        raise UnknownInputs("operators have other inputs than they were given") from None
    scalars = {real, integer, boolean, complex_}
    if not agreed or len({tensor, list_} | scalars) != 6 or max(scalars) > 31:
        raise UnknownInputs("the tags of an operator's inputs contradict another's")
    return tensor, list_, sum(1 << tag for tag in scalars)


def _sizes_at(small: bytes, large: bytes) -> int:
    def is_there(at: int) -> bool:
        if _number(small, at) != len(_SMALL) or _number(large, at) != len(_LARGE):
            return False
        return [_number(small, at + _WORD * (i + 1)) for i in range(len(_SMALL))] == list(_SMALL)

    found = [at for at in range(16, _LOOKED_AT - _WORD * (len(_SMALL) + 1), _WORD) if is_there(at)]
    if len(found) != 1:
        raise UnknownInputs(f"the sizes are in {len(found)} places of a tensor")
    outside = ctypes.string_at(_number(large, found[0] + _WORD), _WORD * len(_LARGE))
    if [_number(outside, _WORD * i) for i in range(len(_LARGE))] != list(_LARGE):
        raise UnknownInputs("the sizes of a tensor of six dimensions are elsewhere")
    return found[0]


def _bytes_of(tensor: Any) -> bytes:
    return ctypes.string_at(tensor._cdata, _LOOKED_AT)


def _number(said: bytes, at: int, size: int = _WORD) -> int:
    return int.from_bytes(said[at : at + size], sys.byteorder)
